package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// replace replaces the table of that name in text.
func replace(text, name, table string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", errors.New("no place for " + name)
	}
	return before + begin + table + end + after, nil
}

type column struct {
	title, unit, suffix string
	digits              int // after the point
}

// columns lists the columns of the tables, each with the unit of its figures.
var columns = []column{
	{"requests a minute", "requests/min", "", 0},
	{"most in a second", "most/s", "", 0},
	{"polls among them", "%-polls", " %", 0},
	{"429s", "429s", "", 0},
	{"found at the latest after", "s-found", " s", 0},
	{"99 of 100 notified within", "s-notified-p99", " s", 0},
	{"notified at the latest after", "s-notified", " s", 0},
	{"longest time unseen", "s-unseen", " s", 0},
	{"polls within 30 s", "within-floor", "", 0},
	{"first poll (p95)", "s-first-p95", " s", 1},
	{"of the limit used", "%-of-edge", " %", 0},
	{"cycles to recover", "cycles-to-recover", "", 0},
	{"failed waits", "failed", "", 0},
}

// table returns a table of the results, with the columns that have values.
func table(what string, results []result) string {
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return !slices.ContainsFunc(results, func(r result) bool { _, ok := r.values[c.unit]; return ok })
	})
	var b strings.Builder
	b.WriteString("| " + what + " |")
	for _, c := range shown {
		b.WriteString(" " + c.title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(shown)) + "\n")
	for _, r := range results {
		b.WriteString("| " + title(r.name) + " |")
		for _, c := range shown {
			if v, ok := r.values[c.unit]; ok {
				b.WriteString(" " + number(v, c.digits) + c.suffix)
			}
			b.WriteString(" |")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// title returns a result's name for people: "1,000, dense" for "1000/dense".
func title(name string) string {
	n, way, _ := strings.Cut(name, "/")
	if f, err := strconv.ParseFloat(n, 64); err == nil {
		return number(f, 0) + ", " + way
	}
	return name
}

// number formats a number with commas.
func number(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'f', digits, 64)
	whole, _, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
