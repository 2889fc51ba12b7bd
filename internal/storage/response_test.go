package storage

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRead_UnderstandsErrors(t *testing.T) {
	t.Parallel()
	const good = "<Error><Code>SlowDown</Code><Message>Please wait</Message><RequestId>r1</RequestId></Error>"
	whole := Outcome{Code: "SlowDown", Message: "Please wait", RequestID: "r1"}
	notXML := Outcome{Message: "the response is not an XML error of storage: storage.example"}
	for name, test := range map[string]struct {
		body string
		want Outcome
	}{
		"S3's form":            {`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + good, whole},
		"byte order mark":      {"\ufeff" + good, whole},
		"namespace":            {`<s:Error xmlns:s="http://s3.example/"><s:Code>A</s:Code></s:Error>`, Outcome{Code: "A"}},
		"space and CDATA":      {"<Error>\n <Code>\n A<![CDATA[<B>]]> </Code>\n</Error>", Outcome{Code: "A<B>"}},
		"elements of a secret": {"<Error><Code>A</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId><StringToSign>s</StringToSign></Error>", Outcome{Code: "A"}},
		"cut after the code":   {"<Error><Code>A</Code><Message>half a sent", Outcome{Code: "A"}},
		"cut in the code":      {"<Error><Code>Access", notXML},
		"HTML":                 {"<!DOCTYPE html><html><head><title>503</title></head><body><Code>A</Code><br></body></html>", notXML},
		"empty":                {"", notXML},
		"JSON":                 {`{"Code":"A"}`, notXML},
		"another root":         {"<Response><Code>A</Code></Response>", notXML},
		"entity expansion":     {`<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><Error><Code>A</Code><Message>&b;</Message></Error>`, Outcome{Code: "A"}},
		"deeply nested":        {"<Error><Code>A</Code>" + strings.Repeat("<a>", 1<<20), Outcome{Code: "A"}},
		"message of 1 MiB":     {"<Error><Code>A</Code><Message>" + strings.Repeat("m", 1<<20), Outcome{Code: "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader(test.body)
			got := put(t, target, nil, 0).read(&http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(body)}, true)
			test.want.StatusCode = 503
			got.Message, _, _ = strings.Cut(got.Message, " sent ")
			require.Equal(t, test.want, got)
			require.LessOrEqual(t, body.Size()-int64(body.Len()), int64(64<<10))
		})
	}
}

// A response that is not from storage says who sent it, without the secrets that it echoes.
func TestRead_DescribesForeignResponses(t *testing.T) {
	t.Parallel()
	const page = "<html><head><title>Log in to feedfacecafebeef</title>"
	for name, test := range map[string]struct {
		status      int
		contentType string
		whole       bool
		want        Outcome
	}{
		"login page": {200, "text/html; charset=utf-8", true,
			Outcome{Message: `the response is not from storage: storage.example (nginx) sent "Log in to ***"`}},
		"page of a gateway": {502, "text/html", true,
			Outcome{Message: `the response is not an XML error of storage: storage.example (nginx) sent "Log in to ***"`}},
		"redirect":     {307, "text/html", false, Outcome{Message: "the Client does not follow redirects, here to login.example"}},
		"2xx":          {200, "text/plain", true, Outcome{}},
		"2xx too soon": {200, "", false, Outcome{Message: "storage.example responded before it had the whole recording"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Server": {"nginx"}, "Content-Type": {test.contentType}, "Location": {"https://login.example/?t=1"}}
			test.want.StatusCode = test.status
			resp := &http.Response{StatusCode: test.status, Header: h, Body: io.NopCloser(strings.NewReader(page))}
			require.Equal(t, test.want, put(t, target, nil, 0).read(resp, test.whole))
		})
	}
	resp := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"7"}, "X-Amz-Request-Id": {"r2"}}, Body: http.NoBody}
	o := put(t, target, nil, 0).read(resp, true)
	require.Equal(t, 7*time.Second, o.RetryAfter)
	require.Equal(t, "r2", o.RequestID)
}
