package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// banner prints the addresses of the service and the keys that it accepts.
func banner(w io.Writer, world minutestest.World, env []string, baseURL, controlURL string) {
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
		}
		_ = table.Flush()
		if len(o.Keys) == 0 {
			fmt.Fprintln(w, "  none: no client can use this organisation")
		}
	}
	fmt.Fprintf(w, "\nexport %s\n", strings.Join(env, " "))
}

// environment is what a client needs to know, as a shell takes it; key is the
// one to begin with, if there is one.
func environment(world minutestest.World, key, baseURL, controlURL string) []string {
	for i := range world.Organisations {
		for _, k := range world.Organisations[i].Keys {
			if key == "" && !k.Revoked && k.ExpiresAt == 0 {
				key = k.Secret
			}
		}
	}
	env := []string{"MINUTES_BASE_URL=" + quote(baseURL), "MINUTES_API_KEY=" + quote(key)}
	if controlURL != "" {
		env = append(env, "MINUTES_CONTROL_URL="+quote(controlURL))
	}
	return env
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
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
