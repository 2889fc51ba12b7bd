// Plot makes the figures of docs/waiting.md from what the benchmarks print, which
// it reads from its standard input:
//
//	go test -run '^$' -bench 'Worlds|Fleets|Waits' -benchtime 1x ./internal/poll | go run ./docs/plot
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// result is what a benchmark has measured, by unit.
type result struct {
	name   string
	values map[string]float64
}

func main() {
	if err := run(os.Stdin, "docs"); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, dir string) error {
	results, err := read(in)
	if err != nil {
		return err
	}
	worlds, fleets, waits := under(results, "Worlds/"), under(results, "Fleets/"), under(results, "Waits/")
	if len(worlds) == 0 || len(fleets) == 0 || len(waits) == 0 {
		return errors.New("the benchmarks Worlds, Fleets and Waits are needed")
	}
	page := filepath.Join(dir, "waiting.md")
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := replace(string(old), "worlds", table("scenario", worlds))
	if err == nil {
		text, err = replace(text, "fleets", table("scenario", fleets))
	}
	if err == nil {
		text, err = replace(text, "waits", table("meetings waited for", waits))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "waiting.svg"), []byte(picture(waits)), 0o666)
}

var line = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// read takes the results from a benchmark's output.
func read(in io.Reader) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		r := result{strings.ReplaceAll(m[1], "_", " "), make(map[string]float64)}
		fields := strings.Fields(m[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			r.values[fields[i+1]] = value
		}
		results = append(results, r)
	}
	return results, lines.Err()
}

// under returns the results of one benchmark, without its name.
func under(results []result, prefix string) []result {
	var some []result
	for _, r := range results {
		if name, ok := strings.CutPrefix(r.name, prefix); ok {
			some = append(some, result{name, r.values})
		}
	}
	return some
}
