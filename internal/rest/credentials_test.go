package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestCredentials_SetHeaderOfEachAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   Request
		want http.Header
	}{
		"without a body": {get, http.Header{"Accept": {"application/json"}}},
		"with a body": {
			Request{Path: "/", Body: 1, Repeatable: true},
			http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
		},
		"with the caller's": {
			Request{
				Path: "/", Repeatable: true,
				Header: http.Header{"traceparent": {"00-1"}, "authorization": {"Bearer other"}},
			},
			http.Header{"Accept": {"application/json"}, "Traceparent": {"00-1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				test.want.Set("Authorization", "Bearer "+apiKey)
				test.want.Set("User-Agent", "test/1")
				_, err := newClient(testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					attempts++
					assert.Equal(t, test.want, req.Header)
					req.Header["Authorization"] = []string{"replaced by a careless transport"}
					return nil, io.EOF
				})).Call(t.Context(), test.in)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, 5, attempts)
			})
		})
	}
}

var errVault = errors.New("the vault is closed")

// keys returns a function for Config.Key, which returns one key after the other, and at last the
// last one. In place of an empty key, it returns errVault.
func keys(all ...string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		key := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		if key == "" {
			return "", errVault
		}
		return key, nil
	}
}

// Each attempt has the key of its own time. After a 401, every request is repeated once, at once,
// if the key has changed, even if retries are switched off.
func TestCredentials_KeyMayChange(t *testing.T) {
	t.Parallel()
	background := get
	background.Background = true
	for name, test := range map[string]struct {
		keys    []string
		answers []answer
		sent    []string
		status  int
		failure bool
	}{
		"between attempts": {
			[]string{"key_1", "key_2"}, []answer{{status: 429}, {status: 200}}, []string{"key_1", "key_2"}, 200, false,
		},
		"before a 401": {
			[]string{"key_1", "key_2"}, []answer{{status: 401}, {status: 200}}, []string{"key_1", "key_2"}, 200, false,
		},
		"not at all": {[]string{"key_1"}, []answer{{status: 401}}, []string{"key_1"}, 401, false},
		"twice": {
			[]string{"key_1", "key_2", "key_2", "key_3"}, []answer{{status: 401}}, []string{"key_1", "key_2"}, 401,
			false,
		},
		"before a 403":           {[]string{"key_1", "key_2"}, []answer{{status: 403}}, []string{"key_1"}, 403, false},
		"no key":                 {[]string{""}, []answer{{status: 200}}, nil, 0, true},
		"no key any more":        {[]string{"key_1", ""}, []answer{{status: 429}}, []string{"key_1"}, 429, true},
		"no key after a 401":     {[]string{"key_1", ""}, []answer{{status: 401}}, []string{"key_1"}, 0, true},
		"no key for the renewal": {[]string{"key_1", "key_2", ""}, []answer{{status: 401}}, []string{"key_1"}, 0, true},
	} {
		for _, in := range []Request{get, create, background} {
			if test.answers[0].status == 429 && in.Background {
				continue // which has one attempt
			}
			t.Run(name+" "+in.Method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &service{answers: test.answers}
					observed := 0
					c := newClient(s, func(cfg *Config) {
						cfg.Key = keys(test.keys...)
						cfg.MaxRetries = 1
						if test.answers[0].status == 401 {
							cfg.MaxRetries = 0
						}
						cfg.Observe = func(context.Context, AttemptReport) { observed++ }
					})
					began := time.Now()
					resp, err := c.Call(t.Context(), in)
					var sent []string
					for _, req := range s.reqs {
						sent = append(sent, req.Header.Get("Authorization")[len("Bearer "):])
					}
					require.Equal(t, test.sent, sent)
					require.Equal(t, len(sent), observed, "no attempt without a request")
					require.Equal(t, test.status, resp.Status)
					if test.answers[0].status == 401 {
						require.Equal(t, began, time.Now(), "at once")
					}
					if !test.failure {
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, errVault)
					require.ErrorContains(t, err, "getting the API key: the vault is closed")
					_, ok := errors.AsType[*KeyError](err)
					require.True(t, ok)
				})
			})
		}
	}
}

// A function that hangs takes no longer than an attempt may take.
func TestCredentials_KeyHasTimeout(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := newClient(
			&service{answers: []answer{{status: 200}}},
			func(cfg *Config) { cfg.Key = hangs },
		).Call(t.Context(), get)
		require.Equal(t, 30*time.Second, time.Since(began))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller has no deadline")
	})
}

// Only the end of the caller's own ctx is a cancellation. A function or a transport may return that
// of a context which it shares with other calls.
func TestCall_ReportsNoCancellationOfAnotherContext(t *testing.T) {
	t.Parallel()
	shared := func(context.Context) (string, error) { return "", context.Canceled }
	for name, c := range map[string]*Client{
		"key":       newClient(&service{answers: []answer{{status: 200}}}, func(cfg *Config) { cfg.Key = shared }),
		"transport": newClient(&service{answers: []answer{{err: context.Canceled}}}, noRetries),
	} {
		_, err := c.Call(t.Context(), get)
		require.ErrorContains(t, err, "context canceled", name)
		require.NotErrorIs(t, err, context.Canceled, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newClient(&service{answers: []answer{{err: context.Canceled}}}).Call(ctx, get)
	require.ErrorIs(t, err, context.Canceled)
}

// No error shows a key that was ever in use, nor does an error of the function itself.
func TestCredentials_MaskEachKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const first = "key_first_secret"
		const second = "key_second_secret"
		c := newClient(
			&service{answers: []answer{{status: 401}, {err: errors.New(first + " or " + second)}}},
			noRetries,
			func(cfg *Config) {
				cfg.Key = keys(first, second)
				cfg.Mask = NewMask()
			},
		)
		_, err := c.Call(t.Context(), get)
		require.EqualError(t, err, "*** or ***")
		c.Key = func(context.Context) (string, error) { return "", errors.New("no successor of " + second) }
		_, err = c.Call(t.Context(), get)
		require.EqualError(t, err, "getting the API key: no successor of ***")
	})
}
