package upload

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/secret"
)

func TestReadResponse(t *testing.T) {
	t.Parallel()
	const good = "<Error><Code>SlowDown</Code><Message>Please wait</Message><RequestId>r1</RequestId></Error>"
	notXML := Response{Message: "the response is not an XML error of storage: storage.example"}
	for name, test := range map[string]struct {
		body string
		want Response
	}{
		"S3's form":             {`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + good, Response{Code: "SlowDown", Message: "Please wait", RequestID: "r1"}},
		"byte order mark":       {"\ufeff" + good, Response{Code: "SlowDown", Message: "Please wait", RequestID: "r1"}},
		"another encoding":      {`<?xml version="1.0" encoding="ISO-8859-1"?>` + good, Response{Code: "SlowDown", Message: "Please wait", RequestID: "r1"}},
		"namespace":             {`<Error xmlns="http://s3.example/doc/"><Code>A</Code></Error>`, Response{Code: "A"}},
		"prefix":                {`<s:Error xmlns:s="http://s3.example/"><s:Code>A</s:Code></s:Error>`, Response{Code: "A"}},
		"space and CDATA":       {"<Error>\n <Code>\n A<![CDATA[<B>]]> </Code>\n</Error>", Response{Code: "A<B>"}},
		"repeated elements":     {"<Error><Code>A</Code><Code>B</Code><Message/><Message>m</Message></Error>", Response{Code: "B", Message: "m"}},
		"other elements":        {"<Error><Code>A</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId><StringToSign>s</StringToSign><Details><Message>deep</Message></Details></Error>", Response{Code: "A"}},
		"cut after the code":    {"<Error><Code>A</Code><Message>half a sent", Response{Code: "A"}},
		"cut in the code":       {"<Error><Code>Access", notXML},
		"HTML":                  {"<!DOCTYPE html><html><head><title>503</title></head><body><Code>A</Code><br></body></html>", notXML},
		"text":                  {"too busy", notXML},
		"empty":                 {"", notXML},
		"JSON":                  {`{"Code":"A"}`, notXML},
		"another root":          {"<Response><Code>A</Code></Response>", notXML},
		"Error in Error":        {"<Error><Error><Code>A</Code></Error></Error>", notXML},
		"invalid UTF-8":         {"<Error><Code>A</Code><Message>\xff\xfe</Message></Error>", Response{Code: "A"}},
		"entity expansion":      {`<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><Error><Code>A</Code><Message>&b;</Message></Error>`, Response{Code: "A"}},
		"external entity":       {`<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><Error><Message>&a;</Message></Error>`, notXML},
		"deeply nested":         {"<Error><Code>A</Code>" + strings.Repeat("<a>", 1<<20), Response{Code: "A"}},
		"deeply nested Errors":  {strings.Repeat("<Error>", 1<<20), notXML},
		"many attributes":       {"<Error " + strings.Repeat(`a="b" `, 1<<18) + "/>", notXML},
		"message of 1 MiB":      {"<Error><Code>A</Code><Message>" + strings.Repeat("m", 1<<20) + "</Message></Error>", Response{Code: "A"}},
		"after 1 MiB of spaces": {strings.Repeat(" ", 1<<20) + good, notXML},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader(test.body)
			got := readResponse(&http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(body)}, "storage.example", secret.Mask{})
			test.want.StatusCode = 503
			got.Message, _, _ = strings.Cut(got.Message, " sent ")
			require.Equal(t, test.want, got)
			read := body.Size() - int64(body.Len())
			require.LessOrEqual(t, read, int64(64<<10))
			require.Equal(t, min(body.Size(), 64<<10), read, "read to the end, so that the connection can be reused")
		})
	}
	const page = "<html><head><title>Log in to feedfacecafebeef</title>"
	for status, want := range map[int]string{
		200: `the response is not from storage: storage.example (nginx) sent "Log in to ***"`,
		502: `the response is not an XML error of storage: storage.example (nginx) sent "Log in to ***"`,
		307: "the Client does not follow redirects",
	} {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Server": {"nginx"}, "Content-Type": {"text/html; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(page))}
		require.Equal(t, want, readResponse(resp, "storage.example", secret.Mask{"feedfacecafebeef"}).Message)
	}
	require.Equal(t, Response{StatusCode: 204}, readResponse(&http.Response{StatusCode: 204, Body: http.NoBody}, "storage.example", secret.Mask{}))
	require.Equal(t, 500, readResponse(&http.Response{StatusCode: 500, Body: http.NoBody}, "storage.example", secret.Mask{}).StatusCode)
}

func FuzzReadResponse(f *testing.F) {
	f.Add(403, "<Error><Code>A</Code><Message>b</Message><RequestId>c</RequestId></Error>")
	f.Add(503, "<Error><Code>A")
	f.Add(400, "<!DOCTYPE html><p>no")
	f.Add(500, "<?xml version='1.0' encoding='x'?><Error xmlns='u'><Message><![CDATA[m]]></Message></Error>")
	f.Fuzz(func(t *testing.T, status int, body string) {
		const signature = "feedfacecafebeef"
		mask := secret.Mask{signature}
		resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body + signature))}
		e := readResponse(resp, "storage.example", mask)
		if e.StatusCode != status {
			t.Fatalf("status %d: %v", status, e)
		}
		if status/100 == 2 {
			return
		}
		if e.Code == "" && e.Message == "" {
			t.Fatal("the response is empty")
		}
		if text := e.Code + e.Message + e.RequestID; strings.Contains(text, signature) {
			t.Fatalf("%q", text)
		}
	})
}
