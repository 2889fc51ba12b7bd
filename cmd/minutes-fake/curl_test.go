package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func realCurl(t *testing.T, argv []string) string {
	t.Helper()
	var out, wrong bytes.Buffer
	cmd := exec.Command("curl", argv...)
	cmd.Stdout, cmd.Stderr = &out, &wrong
	require.NoError(t, cmd.Run(), "curl %q: %s", argv, &wrong)
	return strings.ReplaceAll(out.String(), "\r", "")
}

// hasCurl reports whether there is a curl that knows --json.
func hasCurl() bool { return exec.Command("curl", "--json", "{}", "--version").Run() == nil }

// goCurl is as much of curl as the session of README.md needs.
func goCurl(t *testing.T, argv []string) string {
	t.Helper()
	var method, target, body string
	header, showHeader := http.Header{}, false
	for i := 0; i < len(argv); i++ {
		value := func() string { i++; require.Less(t, i, len(argv)); return argv[i] }
		switch arg := argv[i]; arg {
		case "-s":
		case "-si":
			showHeader = true
		case "-X":
			method = value()
		case "-H":
			name, text, _ := strings.Cut(value(), ": ")
			header.Set(name, text)
		case "--json":
			body = value()
			header.Set("Content-Type", "application/json")
		case "--data-binary":
			body = value()
		default:
			require.False(t, strings.HasPrefix(arg, "-"), "goCurl does not know %s", arg)
			target = arg
		}
	}
	if method == "" && body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	require.NoError(t, err)
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	response, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if !showHeader {
		return string(response)
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s\n", resp.Proto, resp.Status)
	date := resp.Header.Get("Date")
	resp.Header.Del("Date") // it comes last
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		fmt.Fprintf(&head, "%s: %s\n", name, resp.Header.Get(name))
	}
	fmt.Fprintf(&head, "Date: %s\n\n%s", date, response)
	return head.String()
}

// words takes a command apart as a shell does, as far as the session needs:
// quotes, variables and lines that go on. With open, more has to follow.
func words(command string, variable func(string) string) (list []string, open bool) {
	var word strings.Builder
	inWord, quote := false, byte(0)
	command = strings.TrimSuffix(command, "\n")
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == quote && quote != 0:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case c == '\\' && quote == 0 && i+1 == len(command):
			return list, true
		case c == '\\' && quote == 0 && command[i+1] == '\n':
			i++
		case c == '$' && quote != '\'' && variable != nil:
			end := i + 1
			for end < len(command) && (command[end] == '_' || command[end] >= 'A' && command[end] <= 'Z') {
				end++
			}
			word.WriteString(variable(command[i+1 : end]))
			i, inWord = end-1, true
		case quote == 0 && (c == ' ' || c == '\n'):
			if inWord {
				list = append(list, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		list = append(list, word.String())
	}
	return list, quote != 0
}
