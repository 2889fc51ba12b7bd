package engine

import (
	"time"
)

// instant is a point in time, in nanoseconds since 1970. The engine keeps
// instants rather than time.Time for their size, and because a wall clock is
// all that requests from inside and outside a synctest bubble have in common.
type instant int64

func instantOf(t time.Time) instant { return instant(t.UnixNano()) }

func (t instant) time() time.Time { return time.Unix(0, int64(t)).UTC() }

func (t instant) add(d time.Duration) instant { return t + instant(d) }

// seconds is t as the interface writes it.
func (t instant) seconds() int64 {
	if t < 0 { // round towards the past on both sides of 1970
		return (int64(t) - int64(time.Second) + 1) / int64(time.Second)
	}
	return int64(t) / int64(time.Second)
}

// date is a calendar date as the number YYYYMMDD, so that dates compare as
// numbers and a month or a year is a quotient.
type date int32

// parseDate takes YYYY-MM-DD and nothing else. The calendar has no year 0.
func parseDate(s string) (date, bool) {
	if len(s) != len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	year, ok1 := digits(s[:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:])
	if !ok1 || !ok2 || !ok3 || year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	return dateOf(year, month, day), true
}

func dateOf(year, month, day int) date { return date(year*10000 + month*100 + day) }

func (d date) year() int  { return int(d) / 10000 }
func (d date) month() int { return int(d) / 100 % 100 }
func (d date) day() int   { return int(d) % 100 }

func (d date) append(b []byte) []byte {
	b = append2(b, d.year()/100)
	b = append2(b, d.year()%100)
	b = append(b, '-')
	b = append2(b, d.month())
	b = append(b, '-')
	return append2(b, d.day())
}

func (d date) String() string { return string(d.append(make([]byte, 0, 10))) }

// midnight is the instant at which d begins in UTC. ok is false for a date
// too far off for an instant.
func (d date) midnight() (t instant, ok bool) {
	if d.year() < 1700 || d.year() > 2250 {
		return 0, false
	}
	return instantOf(time.Date(d.year(), time.Month(d.month()), d.day(), 0, 0, 0, 0, time.UTC)), true
}

// nextMonth is the same day of the next month, or that month's last day.
func (d date) nextMonth(day int) date {
	year, month := d.year(), d.month()+1
	if month > 12 {
		year, month = year+1, 1
	}
	return dateOf(year, month, min(day, daysIn(year, month)))
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// clock is a time of day in minutes since midnight.
type clock int16

const noTime clock = -1

// parseClock takes HH:MM and nothing else.
func parseClock(s string) (clock, bool) {
	if len(s) != len("15:04") || s[2] != ':' {
		return 0, false
	}
	hour, ok1 := digits(s[:2])
	minute, ok2 := digits(s[3:])
	if !ok1 || !ok2 || hour > 23 || minute > 59 {
		return 0, false
	}
	return clock(hour*60 + minute), true
}

func (c clock) append(b []byte) []byte {
	b = append2(b, int(c)/60)
	b = append(b, ':')
	return append2(b, int(c)%60)
}

func (c clock) String() string {
	if c == noTime {
		return ""
	}
	return string(c.append(make([]byte, 0, 5)))
}

func append2(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// digits reads a number of ASCII digits alone.
func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}
