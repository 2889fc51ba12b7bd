package upload

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// An upload sends Content-MD5 if the URL's signature allows it, and omits it once if storage
// rejects it.
func TestUpload_ContentMD5(t *testing.T) {
	t.Parallel()
	reject := func(status int, code, message string) roundTripper {
		return answer(0, status, code+"</Code><Message>"+message+"</Message><Code>"+code)
	}
	for name, test := range map[string]struct {
		put     roundTripper // of the first attempt
		without bool
		md5     []bool // whether each attempt has the header
		failed  bool
	}{
		"stored":                  {put: swallow, md5: []bool{true}},
		"switched off":            {put: swallow, without: true, md5: []bool{false}},
		"lost":                    {put: lose(0), md5: []bool{true, true}},
		"400 BadDigest":           {put: reject(400, "BadDigest", "The Content-MD5 you specified did not match what we received"), md5: []bool{true, true}},
		"400 InvalidDigest":       {put: reject(400, "InvalidDigest", ""), md5: []bool{true, false}},
		"403 unsigned header":     {put: reject(403, "AccessDenied", "There were headers present in the request which were not signed"), md5: []bool{true, false}},
		"403 SignatureDoesNot...": {put: reject(403, "SignatureDoesNotMatch", ""), md5: []bool{true, false}},
		"501 NotImplemented":      {put: reject(501, "NotImplemented", ""), md5: []bool{true, false}},
		"403 AccessDenied":        {put: reject(403, "AccessDenied", "Access Denied"), md5: []bool{true}, failed: true},
		"404":                     {put: reject(404, "NoSuchKey", ""), md5: []bool{true}, failed: true},
		"switched off, 403":       {put: reject(403, "SignatureDoesNotMatch", ""), without: true, md5: []bool{false}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(service)
				u := s.upload(4)
				u.WithoutMD5 = test.without
				var md5 []bool
				u.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
					md5 = append(md5, req.Header.Get("Content-Md5") != "")
					if len(md5) == 1 {
						return test.put(req)
					}
					return swallow(req)
				})
				require.Equal(t, test.failed, u.Do(t.Context()) != nil)
				require.Equal(t, test.md5, md5)
			})
		})
	}
}

// If storage rejects the retry without Content-MD5, too, the upload fails.
func TestUpload_OmitsContentMD5Once(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reject := answer(0, 403, "SignatureDoesNotMatch")
		s := &service{puts: []roundTripper{reject, reject, reject}}
		f := s.upload(4).Do(t.Context())
		require.Equal(t, "SignatureDoesNotMatch", f.Code)
		require.Equal(t, []string{"url", "put", "put"}, s.log)
	})
}

// The upload sends Content-MD5 only if the URL's signature allows headers that it does not cover.
func TestHeader_ContentMD5NeedsAWSVersion4(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=1": true, "Signature=1&AWSAccessKeyId=2": false, "X-Goog-Algorithm=GOOG4-RSA-SHA256": false, "": false} {
		u := put(t, "https://storage.example/k?"+query, swallow, audio(10))
		header, err := u.header(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, header.Get("Content-Md5") != "", query)
	}
}

// BenchmarkDigest measures the cost of Content-MD5 before an upload: one read of the file. The file
// is in the page cache, so this is the cost of the hash.
func BenchmarkDigest(b *testing.B) {
	const size = 64 << 20
	f, _ := file(b, size)
	rec := Recording{Audio: f, Size: size, ContentType: "audio/mpeg"}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := digest(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
}
