package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// banner tells where the service is, who may come in, and how; key is the one
// to begin with.
func banner(w io.Writer, world minutestest.World, key, baseURL, controlURL string) {
	fmt.Fprintf(w, "The Meeting Minutes Service, in memory.\n\n  service  %s\n", baseURL)
	if controlURL != "" {
		fmt.Fprintf(w, "  control  %s  (a page, in a browser)\n", controlURL)
	}
	for i := range world.Organisations {
		o := &world.Organisations[i]
		fmt.Fprintf(w, "\nKeys of %s\n\n", cmp.Or(o.Name, o.ID))
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, k := range o.Keys {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", k.Secret, whose(o, k), rights(k))
			if key == "" && !k.Revoked && k.ExpiresAt == 0 {
				key = k.Secret
			}
		}
		_ = table.Flush()
		if len(o.Keys) == 0 {
			fmt.Fprintln(w, "  none: nobody can call the service for it")
		}
	}
	fmt.Fprintf(w, "\nexport MINUTES_BASE_URL=%s MINUTES_API_KEY=%s", baseURL, quote(key))
	if controlURL != "" {
		fmt.Fprintf(w, " MINUTES_CONTROL_URL=%s", controlURL)
	}
	fmt.Fprintln(w)
}

func whose(o *minutestest.Organisation, k minutestest.Key) string {
	if n := o.Integration(k.IntegrationID); n != nil {
		return cmp.Or(n.Name, n.ID) + ", an integration"
	}
	m := o.Member(k.MemberID)
	if m.Admin {
		return cmp.Or(m.Name, m.ID) + ", an administrator"
	}
	return cmp.Or(m.Name, m.ID)
}

func rights(k minutestest.Key) string {
	switch {
	case k.Revoked:
		return "revoked"
	case k.Scopes == nil:
		return "every scope"
	case len(k.Scopes) == 0:
		return "no scope"
	}
	return strings.Join(k.Scopes, " ")
}

// quote makes s one word for a shell.
func quote(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
