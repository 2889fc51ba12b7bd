package conformance

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// An account is a service in memory that the test of this package takes for a
// real one, and a key of it.
type account struct {
	srv  *minutestest.Server
	base string
}

const accountKey = "key_of_an_account"

// allScopes are those of section 5.
var allScopes = []string{"employees:read", "employees:write", "meetings:read", "meetings:write", "meetings:delete", "minutes:read"}

// newAccount opens an account whose key has all scopes except without. A proxy
// may be in front of it.
func newAccount(t *testing.T, proxy func(http.Handler) http.Handler, without ...string) *account {
	t.Helper()
	world := minutestest.DefaultWorld()
	org := &world.Organisations[0]
	scopes := slices.DeleteFunc(slices.Clone(allScopes), func(s string) bool { return slices.Contains(without, s) })
	org.Keys = append(org.Keys, minutestest.Key{Secret: accountKey, IntegrationID: org.Integrations[0].ID, Scopes: scopes})
	srv := minutestest.NewServer(t, minutestest.WithWorld(world), minutestest.WithoutAudit())
	handler := srv.Handler()
	if proxy != nil {
		handler = proxy(handler)
	}
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return &account{srv: srv, base: listener.URL}
}

// titles are the meetings that are there.
func (a *account) titles(t *testing.T) []string {
	t.Helper()
	all := []string{}
	for m, err := range a.srv.Client().Meetings.All(context.Background(), nil) {
		require.NoError(t, err)
		all = append(all, m.Title+" "+m.ExternalID)
	}
	return all
}

// command is the test as a user runs it against the account.
func (a *account) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.v", "-test.run=^Test(Conformance|Cleanup)$"}, args...)...)
	cmd.Env = append(os.Environ(), "MINUTES_CONFORMANCE_BASE_URL="+a.base, "MINUTES_CONFORMANCE_API_KEY="+accountKey, "MINUTES_CONFORMANCE_WRITE=1")
	return cmd
}

var skipLine = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)

// Whichever scope the key lacks, nothing is left behind, nothing that only
// lacks a scope is called a difference, and the scope is named.
func TestMissingScope_SkipsChecksAndLeavesNothing(t *testing.T) {
	t.Parallel()
	cases := [][]string{nil, {"meetings:read", "meetings:delete"}, {"minutes:read"}, {"employees:read"}, {"employees:write"}, {"meetings:read"}, {"meetings:write"}, {"meetings:delete"}}
	for _, lacks := range cases[:testbase.Many(len(cases), 4)] {
		t.Run(strings.Join(lacks, " and "), func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, nil, lacks...)
			out, err := a.command(t).CombinedOutput()
			assert.NoError(t, err, "%s", out)
			assert.Empty(t, a.titles(t), "meetings that are left")
			assert.NotContains(t, string(out), "differs from")
			if slices.Contains(lacks, "meetings:delete") {
				assert.Empty(t, a.srv.Requests("meetings.create"), "what cannot be deleted is not created")
			}
			if len(lacks) == 1 && lacks[0] != "employees:write" {
				assert.Contains(t, string(out), "the key lacks "+lacks[0]+", ", "a check says why it is skipped")
			}
			for _, scope := range lacks {
				if scope != "employees:write" { // which no check of a real account needs
					assert.Regexp(t, "the key lacks .*"+scope+".*: what needs them is skipped", string(out))
				}
			}
		})
	}
}

// On an empty account, the checks skip only the minutes of a recording, if there is no
// recording.
func TestEmptyAccount_SkipsOnlyMinutes(t *testing.T) {
	t.Parallel()
	a := newAccount(t, nil)
	out, err := a.command(t).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var skipped []string
	for _, m := range skipLine.FindAllStringSubmatch(string(out), -1) {
		skipped = append(skipped, m[1])
	}
	want := []string{"TestCleanup", "TestConformance/minutes_that_are_ready"}
	for _, c := range slices.Concat(recordingChecks, disposableChecks) {
		want = append(want, "TestConformance/"+strings.ReplaceAll(c.name, " ", "_"))
	}
	assert.ElementsMatch(t, want, skipped)
	assert.Empty(t, a.titles(t))
}

// Created meetings are distinguishable from the account's own.
func TestCreatedMeetings_HaveThePrefix(t *testing.T) {
	t.Parallel()
	a := newAccount(t, nil)
	_, _, err := a.srv.Client().Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Budget", Date: "2026-03-02", ExternalID: "crm/4711"})
	require.NoError(t, err)
	// A delete that fails leaves everything there, to be looked at.
	a.srv.Inject(minutestest.Match{Operation: "meetings.delete", Nth: 2, Times: minutestest.Always}, minutestest.Refuse(minutes.ErrInternal))
	out, err := a.command(t).CombinedOutput()
	require.Error(t, err)
	left := a.titles(t)
	require.Greater(t, len(left), 1)
	assert.Equal(t, "Budget crm/4711", left[len(left)-1])
	for _, title := range left[:len(left)-1] {
		assert.Contains(t, title, " minutes-go-conformance-")
		_, ref, _ := strings.Cut(title, " minutes-go")
		assert.Contains(t, string(out), ref, "what is left is listed")
	}
	assert.Contains(t, string(out), "-cleanup")
}

// If a service creates a meeting that it must reject, and then fails to delete
// it, the run creates nothing more.
func TestRun_CreatesNothingAfterFailedDelete(t *testing.T) {
	t.Parallel()
	a := newAccount(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != "/v1/meetings" {
				next.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			if next.ServeHTTP(rec, r); rec.Code == http.StatusBadRequest {
				const valid = `{"title":"Whatever","date":"2026-03-02"}`
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(valid)), int64(len(valid))
				rec = httptest.NewRecorder()
				next.ServeHTTP(rec, r)
			}
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	})
	// Seven deletes come before the bodies that the service must reject.
	a.srv.Inject(minutestest.Match{Operation: "meetings.delete", Nth: 7, Times: minutestest.Always}, minutestest.Refuse(minutes.ErrInternal))
	out, err := a.command(t).CombinedOutput()
	require.Error(t, err)
	var whatever int
	for _, title := range a.titles(t) {
		if strings.HasPrefix(title, "Whatever") {
			whatever++
		}
	}
	assert.Equal(t, 1, whatever, "%s", out)
	assert.Contains(t, string(out), "nothing more is created: DELETE /v1/meetings/")
}

// -cleanup deletes what earlier runs have left, and nothing else.
func TestCleanup_DeletesRemainingMeetings(t *testing.T) {
	t.Parallel()
	a := newAccount(t, nil)
	a.srv.SetPageSizes(3)
	for _, ref := range []string{"crm/4711", "minutes-go-conformance-A", "", "conformance-mine", "minutes-go-conformance-B", "x-minutes-go-conformance-C"} {
		_, _, err := a.srv.Client().Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Meeting", Date: "2026-03-02", ExternalID: ref})
		require.NoError(t, err)
	}
	out, err := a.command(t, "-cleanup").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, []string{"Meeting x-minutes-go-conformance-C", "Meeting conformance-mine", "Meeting ", "Meeting crm/4711"}, a.titles(t))
	assert.Contains(t, string(out), "2 meetings of earlier runs are deleted")
	assert.Len(t, a.srv.Requests("meetings.create"), 6, "nothing else is done")

	poor := newAccount(t, nil, "meetings:delete")
	out, err = poor.command(t, "-cleanup").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "the key lacks meetings:delete")
}

// A run that is interrupted takes away what it has made.
func TestInterruptedRun_DeletesItsMeetings(t *testing.T) {
	t.Parallel()
	for _, at := range []int{1, 2, 6} { // creates
		var once sync.Once
		creates, arrived := 0, make(chan struct{})
		var mu sync.Mutex
		a := newAccount(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Path == "/v1/meetings" {
					mu.Lock()
					creates++
					hit := creates == at
					mu.Unlock()
					if hit { // it is created, and its response is lost
						next.ServeHTTP(httptest.NewRecorder(), r)
						once.Do(func() { close(arrived) })
						<-r.Context().Done()
						return
					}
				}
				next.ServeHTTP(w, r)
			})
		})
		cmd := a.command(t)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		<-arrived
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Error(t, cmd.Wait(), "an interrupted run is no success")
		assert.Empty(t, a.titles(t), "%s", out.String())
		assert.Contains(t, out.String(), "interrupt")
	}
}

// With a recording nothing at all is skipped on an empty account, and the
// finished meeting is deleted too.
func TestEmptyAccount_WithRecordingSkipsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // since a real account is looked at every thirty seconds
		srv := minutestest.NewServer(t, minutestest.WithoutAudit())
		tg := &target{
			base: "https://api.minutes.test", key: srv.Key(), http: srv.HTTPClient(), write: true,
			audio: []byte("any bytes will do"), contentType: "audio/wav", made: &ledger{},
		}
		require.NoError(t, tg.ask(t.Context()))
		require.Empty(t, tg.lacks)
		found := &report{}
		tg.conform(t.Context(), found, func(c *check, do func() string) {
			skipped := do()
			assert.Equal(t, c.needs == disposable, skipped != "", "%s: %s", c.name, skipped)
		})
		assert.Empty(t, found.list)
		assert.NotEmpty(t, tg.made.all())
		assert.Empty(t, tg.sweep(t.Context()))
		for m, err := range srv.Client().Meetings.All(t.Context(), nil) {
			assert.Fail(t, "a meeting is left", "%v %v", m, err)
		}
	})
}
