package minutes_test

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The client's packages know each other one way: the root knows rest, upload
// and poll, and these know what stands below them. None knows minutestest, nor
// what tests use.
func TestArrows(t *testing.T) {
	t.Parallel()
	const module = "github.com/meeting-minutes/minutes-go"
	floors := map[string]int{
		module:                    2,
		module + "/internal/rest": 1, module + "/internal/upload": 1, module + "/internal/poll": 1,
		module + "/internal/backoff": 0, module + "/internal/roundtrip": 0, module + "/internal/route": 0, module + "/internal/secret": 0,
	}
	for pkg, floor := range floors {
		files, err := filepath.Glob(filepath.Join("."+strings.TrimPrefix(pkg, module), "*.go"))
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				if !strings.HasPrefix(name, module) {
					continue
				}
				below, client := floors[name]
				require.True(t, client && below < floor, "%s imports %s", path, name)
			}
		}
	}
}

// The table of the package documentation is that of internal/route, and its
// methods are the Client's.
func TestDocumentedScopes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^//\t([A-Z][a-z]+)\.([A-Z]\w+) +([a-z:]+)(\*?) +(documented|assumed) +([a-z_.]+)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, len(route.Table))
	for _, cell := range rows {
		row, ok := route.Of(route.Operation(cell[6]))
		require.True(t, ok, cell[6])
		require.Equal(t, row.Scope, cell[3], cell[6])
		require.Equal(t, map[route.Basis]string{route.Documented: "documented", route.ScopeAssumed: "*documented", route.Assumed: "assumed"}[row.Basis], cell[4]+cell[5], cell[6])
		service, ok := reflect.TypeFor[minutes.Client]().FieldByName(cell[1])
		require.True(t, ok, cell[1])
		_, ok = service.Type.MethodByName(cell[2])
		require.True(t, ok, cell[0])
		require.Equal(t, strings.ToLower(cell[1]+cell[2]), strings.NewReplacer(".", "", "_", "").Replace(cell[6]))
	}
}

// The package documentation fits three screens.
func TestDocumentationIsShort(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "doc", ".").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Less(t, strings.Count(string(out), "\n"), 160)
}

// A recording becomes minutes. With the real service, the Client comes from
// NewFromEnv, and the rest is the same.
func Example() {
	srv := quick() // the service in memory; its meetings take no time
	defer srv.Close()
	script := minutestest.Script{Transcript: "spk_0: The search is faster now.\nspk_0: We decided to ship on Monday.\nspk_1: I will write the notes."}
	if err := srv.Script(script); err != nil {
		log.Fatal(err)
	}
	client := srv.Client()
	ctx := context.Background()

	recording, err := minutes.OpenRecording("examples/quickstart/recording/standup.mp3")
	if err != nil {
		log.Fatal(err)
	}
	defer recording.Close()
	result, err := client.Meetings.Process(ctx, &minutes.MeetingCreateParams{
		Title:          "Weekly",
		Date:           "2026-11-20",
		ExternalID:     "weekly-2026-11-20", // safe to run again after a crash
		ParticipantIDs: []string{"emp_ada", "emp_ben"},
	}, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Minutes.Content)
	// Output:
	// # Weekly
	//
	// *Standard minutes*
	//
	// > Summary, decisions and actions.
	//
	// - **Date:** 2026-11-20
	// - **Duration:** 0:41
	// - **Participants:** Ada Lovelace, Ben Okafor
	//
	// ## Summary
	//
	// - **Ada Lovelace:** The search is faster now.
	//
	// ## Decisions
	//
	// - **Ada Lovelace:** We decided to ship on Monday.
	//
	// ## Actions
	//
	// - **Ben Okafor:** I will write the notes.
}
