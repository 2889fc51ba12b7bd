// Docs writes the measured tables and the recorded pictures of this folder.
// Waiting reads what the benchmarks print and writes waiting.md and waiting.svg:
//
//	go test -run '^$' -bench 'Scenarios|Fleets|Waits|Follows' -benchtime 1x -timeout 30m ./internal/poll | go run ./docs waiting
//
// Terminal reads a recording of script(1) and prints an animated SVG. terminal.sh
// records examples/batch and writes batch.svg:
//
//	docs/terminal.sh
package main

import (
	"fmt"
	"os"
)

const usage = "usage: docs waiting < BENCHMARKS, or docs terminal COMMAND TYPESCRIPT TIMING > SVG"

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "waiting":
		err = writeWaiting(os.Stdin, "docs")
	case len(args) == 4 && args[0] == "terminal":
		err = writeTerminal(args[1], args[2], args[3], os.Stdout)
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}
