package minutes

import "time"

// UnixTime is an instant in whole seconds since 1970, the form of the
// interface's timestamps (section 2).
type UnixTime int64

// Time returns the instant in the local time zone, the zero Time for 0.
func (t UnixTime) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0)
}

// String returns the instant in UTC in the form of RFC 3339, "" for 0.
func (t UnixTime) String() string {
	if t == 0 {
		return ""
	}
	return time.Unix(int64(t), 0).UTC().Format(time.RFC3339)
}

// DateOf returns t's calendar date in t's own time zone as YYYY-MM-DD, the
// form of the interface's dates.
func DateOf(t time.Time) string { return t.Format(time.DateOnly) }

// TimeOfDay returns t's time of day in t's own time zone as HH:MM, the form of
// the interface's times.
func TimeOfDay(t time.Time) string { return t.Format("15:04") }
