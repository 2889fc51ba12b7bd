package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestExitOnEOF_EndsWithStandardInput(t *testing.T) {
	t.Parallel()
	testbase.Timeout(t, time.Minute)
	stdin, owner := io.Pipe()
	stdout, out := io.Pipe()
	ended := make(chan int)
	var wrong buffer
	go func() {
		ended <- run(t.Context(), []string{"-addr", "127.0.0.1:0", "-print-env", "-exit-on-eof"}, stdin, out, &wrong)
	}()
	p := &program{t: t, env: variables(stdout)}
	p.control("GET /health")
	require.NoError(t, owner.Close())
	assert.Equal(t, exitDone, <-ended)
	assert.Contains(t, wrong.String(), "standard input has ended")
}

// runner is a test runner that starts the program with a helper of examples, says so, and then hangs.
type runner struct {
	// example is the file in examples that becomes the file helper.
	example, helper string
	// files are the others; it runs the one called main.
	main  string
	files map[string]string
}

var runners = map[string]runner{
	"node": {
		example: "helper.mjs", helper: "helper.mjs", main: "runner.mjs",
		files: map[string]string{"runner.mjs": `
import { control } from "./helper.mjs";
await control("GET /health");
console.error("ready");
setInterval(() => {}, 1000);`},
	},
	"python3": {
		example: "conftest.py", helper: "helper.py", main: "runner.py",
		files: map[string]string{
			"runner.py": `
import sys, time, helper
fake = helper.fake()
next(fake)
helper.control("GET /health")
print("ready", file=sys.stderr, flush=True)
time.sleep(600)`,
			"pytest.py": "def fixture(*args, **options):\n    return args[0] if args else lambda f: f\n",
		},
	},
}

// write writes what the runner needs into a directory.
func (r runner) write(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(dir, "minutes-fake")))
	code, err := os.ReadFile(filepath.Join("examples", r.example))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, r.helper), code, 0o600))
	for name, code := range r.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600))
	}
}

// Whoever reads the output of a runner, such as a CI job, reads to its end, which comes only when the
// program that inherited it has ended, too.
func TestExamples_ProgramEndsWithItsRunner(t *testing.T) {
	if !testbase.Long() {
		t.Skip("starts other interpreters: set MINUTES_LONG=1")
	}
	t.Parallel()
	testbase.Timeout(t, time.Minute)
	for interpreter, runner := range runners {
		t.Run(interpreter, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(interpreter); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			runner.write(t, dir)
			for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join(dir, runner.main))
				cmd.Env = append(os.Environ(), asTheProgram+"=1",
					"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
				output, inherited, err := os.Pipe()
				require.NoError(t, err)
				cmd.Stderr = inherited
				require.NoError(t, cmd.Start())
				require.NoError(t, inherited.Close())
				lines := bufio.NewReader(output)
				line, err := lines.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "ready\n", line)
				require.NoError(t, cmd.Process.Signal(signal))
				began := time.Now()
				require.Error(t, cmd.Wait(), "it was killed")
				rest, err := io.ReadAll(lines)
				require.NoError(t, err)
				assert.Empty(t, string(rest))
				t.Logf("its output ended %v after %v", time.Since(began).Round(time.Millisecond), signal)
				require.NoError(t, output.Close())
			}
		})
	}
}
