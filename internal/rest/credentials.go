package rest

import (
	"context"
	"errors"
	"net/http"
)

// credentials sets the header. Each attempt gets a header of its own, because a transport may still
// read that of an attempt which has ended.
type credentials struct {
	next      http.RoundTripper
	apiKey    func(context.Context) (string, error)
	userAgent []string
}

var jsonType = []string{"application/json"}

func (l *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	key, err := l.apiKey(req.Context())
	if err != nil {
		return nil, notSent{err}
	}
	k.key = key
	header := http.Header{"User-Agent": l.userAgent, "Accept": jsonType}
	if k.Body != nil {
		header["Content-Type"] = jsonType
	}
	for name, values := range k.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	header["Authorization"] = []string{"Bearer " + key}
	req.Header = header // req is the attempt's own copy, which the link wholeResponse has made
	return l.next.RoundTrip(req)
}

// KeyError means that there was no API key for an attempt, so that the attempt was not made.
type KeyError struct{ Err error }

func (e *KeyError) Error() string { return "getting the API key: " + e.Err.Error() }

// Unwrap returns the error of Config.Key.
func (e *KeyError) Unwrap() error { return e.Err }

// apiKey returns the key of the next attempt, which c.Mask hides from now on. An error is a
// *KeyError.
func (c *Client) apiKey(ctx context.Context) (string, error) {
	key, err := c.Key(ctx)
	c.Mask.Add(key)
	switch {
	case err == nil:
		return key, nil
	case errors.Is(context.Cause(ctx), c.timedOut):
		err = c.timedOut
	}
	return "", &KeyError{notCanceled(ctx, c.Mask.withoutSecrets(err))}
}

// keyAfter401 asks for the key again if the service has rejected that of the last attempt. It asks
// once in each call.
func (c *Client) keyAfter401(ctx context.Context, k *call) (keyChange, error) {
	if k.attempt.Status != http.StatusUnauthorized || k.askedAgain {
		return sameKey, nil
	}
	k.askedAgain = true
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, c.timedOut)
	defer cancel()
	key, err := c.apiKey(ctx)
	switch {
	case err != nil:
		return noKey, err
	case key != k.key:
		return newKey, nil
	}
	return sameKey, nil
}
