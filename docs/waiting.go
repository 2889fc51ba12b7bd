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

// result holds what one benchmark measured, by unit.
type result struct {
	name   string
	values map[string]float64
}

// writeWaiting updates waiting.md and waiting.svg in dir.
func writeWaiting(in io.Reader, dir string) error {
	results, err := readBenchmarks(in)
	if err != nil {
		return err
	}
	scenarios, fleets, waits, follows := under(results, "Scenarios/"), under(results, "Fleets/"), under(results, "Waits/"), under(results, "Follows/")
	if len(scenarios) == 0 || len(fleets) == 0 || len(waits) == 0 || len(follows) == 0 {
		return errors.New("the benchmarks Scenarios, Fleets, Waits and Follows are needed")
	}
	page := filepath.Join(dir, "waiting.md")
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := replace(string(old), "scenarios", table("scenario", scenarios))
	if err == nil {
		text, err = replace(text, "fleets", table("scenario", fleets))
	}
	if err == nil {
		text, err = replace(text, "waits", table("meetings waited for", waits))
	}
	if err == nil {
		text, err = replace(text, "follows", table("scenario", follows))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "waiting.svg"), []byte(picture(waits)), 0o666)
}

var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// readBenchmarks parses the output of go test -bench.
func readBenchmarks(in io.Reader) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m := benchmarkLine.FindStringSubmatch(lines.Text())
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
