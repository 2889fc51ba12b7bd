package engine

import "time"

// Dates and times of day are kept as the interface writes them, YYYY-MM-DD
// and HH:MM. In this form, texts compare as the dates and times that they are.

// validDate reports whether s is a calendar date as YYYY-MM-DD. The calendar
// has no year 0.
func validDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && s >= "0001"
}

// validTime reports whether s is a time of day as HH:MM.
func validTime(s string) bool {
	_, err := time.Parse("15:04", s)
	return err == nil && len(s) == len("15:04") // Parse accepts an hour of one digit
}

// nextMonth returns the given day of the month after that of date, or that
// month's last day.
func nextMonth(date string, day int) string {
	t, _ := time.Parse(time.DateOnly, date)
	last := time.Date(t.Year(), t.Month()+2, 0, 0, 0, 0, 0, time.UTC)
	return last.AddDate(0, 0, min(day, last.Day())-last.Day()).Format(time.DateOnly)
}

// wallClock returns the time in UTC without its monotonic reading: requests
// from inside and outside a synctest bubble share only the wall clock.
func wallClock() time.Time { return time.Now().Round(0).UTC() }
