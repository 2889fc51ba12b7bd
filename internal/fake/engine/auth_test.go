package engine_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// TestKeys is section 5 of the interface with D6 and D18: which keys work, and what the others
// return, in its order.
func TestKeys(t *testing.T) {
	t.Parallel()
	from := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	header := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	key := func(k world.Key) func(*world.Organisation) {
		return func(o *world.Organisation) {
			k.Secret = "k"
			o.Keys = append(o.Keys, k)
		}
	}
	ok := func(*world.Organisation) {}
	for name, tc := range map[string]struct {
		org    func(*world.Organisation)
		key    string
		req    func(*http.Request)
		status int
		code   string
	}{
		"integration key":      {ok, "ci", nil, 200, ""},
		"personal key":         {ok, "bob", nil, 200, ""},
		"no header":            {ok, "", nil, 401, "UNAUTHENTICATED"},
		"unknown key":          {ok, "nobody", nil, 401, "UNAUTHENTICATED"},
		"other scheme":         {ok, "", header("Basic Y2k6"), 401, "UNAUTHENTICATED"},
		"scheme only":          {ok, "", header("Bearer "), 401, "UNAUTHENTICATED"},
		"scheme in other case": {ok, "", header("bEARER ci"), 200, ""},
		"two headers":          {ok, "", header("Bearer ci", "Bearer ci"), 401, "UNAUTHENTICATED"},
		"key without scheme":   {ok, "", header("ci"), 401, "UNAUTHENTICATED"},
		"revoked": {key(world.Key{MemberID: "emp_ada", Revoked: true}), "k", nil, 401,
			"UNAUTHENTICATED"},
		"expired": {key(world.Key{MemberID: "emp_ada", ExpiresAt: 1}), "k", nil, 401,
			"UNAUTHENTICATED"},
		"not expired": {key(world.Key{MemberID: "emp_ada",
			ExpiresAt: minutes.UnixTime(time.Now().Add(time.Hour).Unix())}), "k", nil, 200, ""},
		"of an invited member":       {key(world.Key{MemberID: "emp_inv"}), "k", nil, 401, "UNAUTHENTICATED"},
		"of a deactivated member":    {key(world.Key{MemberID: "emp_gone"}), "k", nil, 401, "UNAUTHENTICATED"},
		"of one without an account":  {key(world.Key{MemberID: "emp_no"}), "k", nil, 401, "UNAUTHENTICATED"},
		"of an inactive integration": {ok, "off", nil, 403, "API_ACCESS_DISABLED"},
		"address on the list": {key(world.Key{MemberID: "emp_ada", IPAllowlist: []string{"10.0.0.0/8"}}), "k",
			from("10.1.2.3:44"), 200, ""},
		"address off the list": {key(world.Key{MemberID: "emp_ada", IPAllowlist: []string{"10.0.0.0/8"}}), "k",
			from("11.1.2.3:44"), 403, "IP_NOT_ALLOWED"},
		"one address": {key(world.Key{MemberID: "emp_ada", IPAllowlist: []string{"10.0.0.1"}}), "k",
			from("10.0.0.2:44"), 403, "IP_NOT_ALLOWED"},
		"mapped address": {key(world.Key{MemberID: "emp_ada", IPAllowlist: []string{"10.0.0.0/8"}}), "k",
			from("[::ffff:10.0.0.2]:44"), 200, ""},
		"IPv6": {key(world.Key{MemberID: "emp_ada", IPAllowlist: []string{"2001:db8::/32"}}), "k",
			from("[2001:db8::7]:44"), 200, ""},
		"suspended": {func(o *world.Organisation) { o.Suspended = true }, "ci", nil, 403,
			"ORGANISATION_SUSPENDED"},
		"expired organisation": {func(o *world.Organisation) { o.Expired = true }, "ci", nil, 403,
			"ORGANISATION_EXPIRED"},
		"suspended before expired": {func(o *world.Organisation) {
			o.Suspended = true
			o.Expired = true
			o.APIDisabled = true
		}, "ci", nil, 403, "ORGANISATION_SUSPENDED"},
		"expired before disabled": {func(o *world.Organisation) {
			o.Expired = true
			o.APIDisabled = true
		}, "ci", nil,
			403, "ORGANISATION_EXPIRED"},
		"no API access": {func(o *world.Organisation) {
			o.APIDisabled = true
			o.PersonalKeysDisabled = true
		}, "ada", nil, 403, "API_ACCESS_DISABLED"},
		"no personal keys": {func(o *world.Organisation) { o.PersonalKeysDisabled = true }, "ada", nil, 403,
			"PERSONAL_API_KEYS_DISABLED"},
		"integrations go on": {func(o *world.Organisation) { o.PersonalKeysDisabled = true }, "ci", nil, 200,
			""},
		"no scope": {key(world.Key{IntegrationID: "int_ci", Scopes: []minutes.Scope{}}), "k", nil,
			403, "INSUFFICIENT_SCOPE"},
		"its scope": {key(world.Key{IntegrationID: "int_ci",
			Scopes: []minutes.Scope{minutes.ScopeMeetingsRead}}), "k", nil, 200, ""},
		"address before suspended": {func(o *world.Organisation) {
			key(world.Key{MemberID: "emp_ada", IPAllowlist: []string{"10.0.0.0/8"}})(o)
			o.Suspended = true
		}, "k", nil, 403, "IP_NOT_ALLOWED"},
		"revoked before address": {key(world.Key{MemberID: "emp_ada", Revoked: true,
			IPAllowlist: []string{"10.0.0.0/8"}}), "k", nil, 401, "UNAUTHENTICATED"},
		"personal keys before scope": {func(o *world.Organisation) {
			key(world.Key{MemberID: "emp_ada", Scopes: []minutes.Scope{}})(o)
			o.PersonalKeysDisabled = true
		}, "k", nil, 403, "PERSONAL_API_KEYS_DISABLED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t, withAcme(tc.org))
			if tc.req == nil {
				tc.req = func(*http.Request) {}
			}
			s.request(tc.key, "GET /v1/meetings", "", tc.req).is(tc.status, tc.code)
			require.Equal(t, tc.status, s.request(tc.key, "HEAD /v1/meetings", "", tc.req).Code)
			// Unknown paths and methods come after all of the key's errors except the scope.
			if tc.status != 200 && tc.code != "INSUFFICIENT_SCOPE" {
				s.request(tc.key, "GET /nowhere", "", tc.req).is(tc.status, tc.code)
				s.request(tc.key, "DELETE /v1/meetings", "", tc.req).is(tc.status, tc.code)
			} else {
				s.request(tc.key, "GET /nowhere", "", tc.req).is(404, "NOT_FOUND")
				s.request(tc.key, "DELETE /v1/meetings", "", tc.req).is(405, "BAD_REQUEST")
			}
		})
	}
}
