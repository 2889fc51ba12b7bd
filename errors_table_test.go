package minutes

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/storage"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// Each error has a kind, and internal/failure says what follows that kind.
func TestKindOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want failure.Kind
	}{
		"canceled":                {&Error{Err: context.Canceled}, failure.Canceled},
		"no key":                  {&Error{Err: &rest.KeyError{Err: testbase.ErrUntrusted}}, failure.NoKey},
		"TLS failure":             {&Error{Err: testbase.ErrUntrusted}, failure.Misconfigured},
		"TLS failure after 503":   {&Error{StatusCode: 503, Err: testbase.ErrUntrusted}, failure.Misconfigured},
		"4xx of a proxy":          {&Error{Err: &rest.ProxyError{Status: "407"}}, failure.Misconfigured},
		"429":                     {&Error{StatusCode: 429}, failure.RateLimited},
		"429 with a code":         {&Error{StatusCode: 429, Code: "TOO_MANY"}, failure.RateLimited},
		"pause":                   {&Error{Code: ErrRateLimited}, failure.RateLimited},
		"401":                     {&Error{StatusCode: 401, Code: ErrUnauthenticated}, failure.KeyRejected},
		"401 with another code":   {&Error{StatusCode: 401, Code: "A_CODE_TO_COME"}, failure.KeyRejected},
		"403 of the key":          {&Error{StatusCode: 403, Code: ErrIPNotAllowed}, failure.KeyRejected},
		"code of the key":         {ErrOrganisationExpired, failure.KeyRejected},
		"401 without a code":      {&Error{StatusCode: 401}, failure.KeyDoubted},
		"minutes not ready":       {&Error{StatusCode: 409, Code: ErrMinutesNotReady}, failure.NotReady},
		"transcript not ready":    {ErrTranscriptNotReady, failure.NotReady},
		"503":                     {&Error{StatusCode: 503}, failure.ServerFailed},
		"503 with a code":         {&Error{StatusCode: 503, Code: "A_CODE_TO_COME"}, failure.ServerFailed},
		"INTERNAL_ERROR":          {ErrInternal, failure.ServerFailed},
		"599":                     {&Error{StatusCode: 599}, failure.ServerUnsure},
		"408":                     {&Error{StatusCode: 408, Code: "A_CODE_TO_COME"}, failure.ServerUnsure},
		"no connection":           {&Error{Err: testbase.ErrRefused}, failure.NotConnected},
		"lost connection":         {&Error{Err: io.EOF}, failure.Lost},
		"2xx that broke off":      {&Error{StatusCode: 200, Err: io.EOF}, failure.Lost},
		"404 that broke off":      {&Error{StatusCode: 404, Err: io.EOF}, failure.Lost},
		"2xx with a page":         {&Error{StatusCode: 200, unusable: failure.ForeignPage}, failure.ForeignPage},
		"2xx that is too long":    {&Error{StatusCode: 200, unusable: failure.Oversized}, failure.Oversized},
		"upload":                  {&StorageError{StatusCode: 503}, failure.StorageFailed},
		"upload to a wrong host":  {&StorageError{Err: testbase.ErrUntrusted}, failure.Misconfigured},
		"upload to a 404":         {&StorageError{StatusCode: 503, Err: ErrNotFound}, failure.StorageFailed},
		"upload, meeting deleted": {&StorageError{StatusCode: 503, Err: &Error{Code: ErrNotFound}}, failure.Gone},
		"upload rejected":         {&StorageError{StatusCode: 403}, failure.Rejected},
		"no audio":                {ErrNoAudio, failure.NoAudio},
		"no audio in an outage":   {errors.Join(ErrNoAudio, &Error{StatusCode: 503}), failure.ServerFailed},
		"deadline":                {context.DeadlineExceeded, failure.Deadline},
		"deadline of a 404":       {errors.Join(&Error{StatusCode: 404}, context.DeadlineExceeded), failure.Deadline},
		"changed recording":       {storage.ErrChanged, failure.Changed},
		"2xx that does not match": {&Error{StatusCode: 200}, failure.Unreadable},
		"302":                     {&Error{StatusCode: 302}, failure.ForeignStatus},
		"404 without a code":      {&Error{StatusCode: 404}, failure.ForeignStatus},
		"404":                     {&Error{StatusCode: 404, Code: ErrNotFound}, failure.Gone},
		"no match":                {&Error{Code: ErrNotFound}, failure.Gone},
		"unknown code":            {ErrorCode("A_CODE_TO_COME"), failure.Rejected},
		"parameter":               {&ParamError{}, failure.Other},
		"failed meeting":          {&MeetingFailedError{}, failure.Other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, kindOf(test.err))
			assert.Equal(t, test.want, kindOf(&WaitError{Err: errors.Join(io.ErrClosedPipe, test.err)}))
		})
	}
}

// failureTexts has what texts call each kind: its row in docs/errors.md, and the beginning of its item
// in the doc comment of Retryable. That item is in the list of what is true or in that of what is false.
var failureTexts = [...]struct{ row, item string }{
	failure.Canceled: {"you canceled `ctx`", "a canceled context"},
	failure.NoKey:    {"the function of `WithAPIKeyFunc` failed", "an error of the function of [WithAPIKeyFunc]"},
	failure.Misconfigured: {
		"an untrusted certificate, another TLS failure, or a 4xx of a proxy to CONNECT", "a TLS failure",
	},
	failure.RateLimited:  {"429", "a 429, a 408 or a 5xx"},
	failure.KeyRejected:  {"401 with a code, or a 403 that concerns the key or the organisation", "a rejected key"},
	failure.KeyDoubted:   {"401 without a code, as from a gateway", "a rejected key"},
	failure.NotReady:     {"minutes or a transcript that are not ready", "minutes or a transcript that are not ready"},
	failure.ServerFailed: {"500, 502, 503, 504", "a 429, a 408 or a 5xx"},
	failure.ServerUnsure: {"408, any other 5xx", "a 429, a 408 or a 5xx"},
	failure.NotConnected: {"no connection", "an API request that got no response"},
	failure.Lost: {
		"a lost connection, or a timeout of the attempt", "an API request that got no response",
	},
	failure.ForeignPage: {
		"a 2xx with another server's page, such as a login page", "an API request that got a 2xx page",
	},
	failure.StorageFailed: {"a temporary failure of storage", "a temporary *StorageError"},
	failure.NoAudio:       {"`ErrNoAudio`", "[ErrNoAudio]"},
	failure.Deadline:      {"the deadline of `ctx`", "the context's deadline"},
	failure.Changed:       {"a recording that changed during its upload", "a file that changed during its upload"},
	failure.Oversized: {
		"a 2xx that is longer than the [limit](#time-limits-and-defaults)", "a 2xx from the service that is too long",
	},
	failure.Unreadable: {
		"a 2xx that does not match the API reference", "a 2xx from the service that is too long or does not match",
	},
	failure.ForeignStatus: {"a redirect, or a 4xx without a code, as from a gateway", "a redirect or a 4xx"},
	failure.Gone:          {"`ErrNotFound`, unless a response has just shown the meeting", "a redirect or a 4xx"},
	failure.Rejected:      {"a 4xx with any other code, or any other response of storage", "a redirect or a 4xx"},
	failure.Other: {
		"anything else, such as an unusable recording or a meeting that failed", "a meeting that failed",
	},
}

func TestErrors_DocsHaveTheTable(t *testing.T) {
	t.Parallel()
	retried := map[failure.Retried]string{
		failure.No: "no", failure.IfSafe: "safe requests", failure.Always: "every request",
	}
	ends := map[failure.End]string{
		failure.Never: "never", failure.Later: "after 10 min",
		failure.AtOnce: "at once", failure.AllAtOnce: "at once, all waits",
		failure.AllLater: "after 10 min, all waits",
	}
	yes := map[bool]string{true: "yes", false: "no"}
	page, err := os.ReadFile("docs/errors.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| `KeyRejected` |\n|---|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	require.Len(t, failureTexts, len(failure.Means))
	var want []string
	for kind, m := range failure.Means {
		if kind == int(failure.None) {
			continue
		}
		want = append(want, fmt.Sprintf("| %s | %s | %s | %s | %s |",
			failureTexts[kind].row, retried[m.Retried], ends[m.EndsWait], yes[m.Retryable], yes[m.KeyRejected],
		))
	}
	require.Equal(t, want, strings.Split(table, "\n"))
}

func TestRetryable_DocListsEachKind(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	require.NoError(t, err)
	doc := ""
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name == "Retryable" {
			doc = f.Doc.Text()
		}
	}
	isTrue, isFalse, found := strings.Cut(doc, "Retryable returns false for everything else, such as:")
	require.True(t, found)
	for kind, m := range failure.Means {
		if kind == int(failure.None) {
			continue
		}
		list := map[bool]string{true: isTrue, false: isFalse}[m.Retryable]
		assert.Contains(t, list, "\n  - "+failureTexts[kind].item, "Retryable is %v", m.Retryable)
	}
}

// A change of one row changes the retry of a request, the end of a wait, the fetch after it, Retryable
// and KeyRejected.
func TestFailureTable_HasFiveReaders(t *testing.T) { // not parallel: it changes the table
	row := &failure.Means[failure.ServerFailed]
	before := *row
	defer func() { *row = before }()
	type seen struct {
		requests                       int
		waits, fetches                 bool
		errRetryable, errIsKeyRejected bool
	}
	look := func() (s seen) {
		synctest.Test(t, func(t *testing.T) {
			unwell := testbase.RoundTripper(func(*http.Request) (*http.Response, error) {
				s.requests++
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
			})
			client, err := New("https://minutes.example", "key_1", WithHTTPClient(&http.Client{Transport: unwell}))
			require.NoError(t, err)
			_, err = client.Usage.Get(t.Context())
			s.errRetryable = Retryable(err)
			s.errIsKeyRejected = KeyRejected(err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			requests := s.requests
			_, err = client.Meetings.Wait(ctx, "mtg_1", nil)
			require.Error(t, err)
			s.waits = ctx.Err() != nil
			ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			minutes := WaitOptions{Until: StatusMinutesReady}
			require.Error(t, client.Meetings.core.fetch(ctx, &Result{MeetingID: "mtg_1"}, minutes, new(slot), 0))
			s.fetches = ctx.Err() != nil
			s.requests = requests
		})
		return s
	}
	require.Equal(t, seen{requests: 7, waits: true, fetches: true, errRetryable: true}, look())
	*row = failure.Meaning{Retried: failure.No, EndsWait: failure.AtOnce, KeyRejected: true}
	require.Equal(t, seen{requests: 1, errIsKeyRejected: true}, look())
}
