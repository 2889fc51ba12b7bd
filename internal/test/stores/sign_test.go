package stores

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
)

const (
	accessKey = "minutesaccess"
	secretKey = "minutessecretkey"
)

// presign returns a URL that is valid for an hour, by AWS Signature Version 4. Unless contentType is
// empty, the request must have it.
func presign(method, base, path, contentType string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err)
	}
	now := time.Now().UTC()
	day := now.Format("20060102")
	scope := day + "/us-east-1/s3/aws4_request"
	signed := "host"
	headers := "host:" + u.Host + "\n"
	if contentType != "" {
		signed = "content-type;host"
		headers = "content-type:" + contentType + "\n" + headers
	}
	query := url.Values{
		"X-Amz-Algorithm":     {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential":    {accessKey + "/" + scope},
		"X-Amz-Date":          {now.Format("20060102T150405Z")},
		"X-Amz-Expires":       {"3600"},
		"X-Amz-SignedHeaders": {signed},
	}.Encode()
	request := strings.Join([]string{method, path, query, headers, signed, "UNSIGNED-PAYLOAD"}, "\n")
	sum := sha256.Sum256([]byte(request))
	text := "AWS4-HMAC-SHA256\n" + now.Format("20060102T150405Z") + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + secretKey)
	for _, part := range []string{day, "us-east-1", "s3", "aws4_request"} {
		key = mac(key, part)
	}
	return base + path + "?" + query + "&X-Amz-Signature=" + hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
