package minutestest

import (
	"cmp"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// config is w for the engine. w has been checked.
func (w World) config() engine.Config {
	stages := w.Stages.or(defaultStages)
	cfg := engine.Config{Stages: engineStages(stages)}
	for i := range w.Organisations {
		cfg.Organisations = append(cfg.Organisations, w.Organisations[i].toEngine())
	}
	return cfg
}

func engineStages(s Stages) engine.Stages {
	return engine.Stages{Prepare: s.Prepare, Transcribe: s.Transcribe, Write: s.Write}
}

func (o *Organisation) toEngine() engine.Organisation {
	e := engine.Organisation{
		ID: o.ID, Name: o.Name,
		Credits: o.Credits, TranscribeSeconds: o.TranscribeSeconds, NextResetAt: o.NextResetAt,
		MaxMembers: o.MaxMembers, MaxTerms: o.MaxTerms,
		Suspended: o.Suspended, Expired: o.Expired,
		APIDisabled: o.APIDisabled, PersonalKeysDisabled: o.PersonalKeysDisabled,
	}
	// The interface has no member, project or template without a name: one that
	// was left out is the id.
	for _, m := range o.Members {
		m.Name = cmp.Or(m.Name, m.ID)
		e.Members = append(e.Members, engine.Member(m))
	}
	for _, n := range o.Integrations {
		e.Integrations = append(e.Integrations, engine.Integration(n))
	}
	for _, p := range o.Projects {
		p.Name = cmp.Or(p.Name, p.ID)
		e.Projects = append(e.Projects, engine.Project(p))
	}
	for _, t := range o.Templates {
		t.Name = cmp.Or(t.Name, t.ID)
		e.Templates = append(e.Templates, engine.Template(t))
	}
	for _, v := range o.Vocabulary {
		term := engine.Term{Term: v.Term}
		for _, w := range v.Variants {
			term.Variants = append(term.Variants, engine.Variant{Text: w.Text, Source: string(w.Source)})
		}
		e.Vocabulary = append(e.Vocabulary, term)
	}
	for _, k := range o.Keys {
		key := engine.Key{Secret: k.Secret, MemberID: k.MemberID, IntegrationID: k.IntegrationID, Scopes: k.Scopes, Revoked: k.Revoked}
		for _, from := range k.IPAllowlist {
			prefix, _ := parsePrefix(from)
			key.Allowlist = append(key.Allowlist, prefix)
		}
		if k.ExpiresAt != 0 {
			key.ExpiresAt = k.ExpiresAt.Time()
		}
		e.Keys = append(e.Keys, key)
	}
	return e
}

func fromEngine(e engine.Organisation) Organisation {
	o := Organisation{
		ID: e.ID, Name: e.Name,
		Credits: e.Credits, TranscribeSeconds: e.TranscribeSeconds, NextResetAt: e.NextResetAt,
		MaxMembers: e.MaxMembers, MaxTerms: e.MaxTerms,
		Suspended: e.Suspended, Expired: e.Expired,
		APIDisabled: e.APIDisabled, PersonalKeysDisabled: e.PersonalKeysDisabled,
	}
	for _, m := range e.Members {
		o.Members = append(o.Members, Member(m))
	}
	for _, n := range e.Integrations {
		o.Integrations = append(o.Integrations, Integration(n))
	}
	for _, p := range e.Projects {
		o.Projects = append(o.Projects, Project(p))
	}
	for _, t := range e.Templates {
		o.Templates = append(o.Templates, Template(t))
	}
	for _, v := range e.Vocabulary {
		entry := minutes.VocabularyEntry{Term: v.Term, Variants: []minutes.VocabularyVariant{}}
		for _, w := range v.Variants {
			entry.Variants = append(entry.Variants, minutes.VocabularyVariant{Text: w.Text, Source: minutes.VariantSource(w.Source)})
		}
		o.Vocabulary = append(o.Vocabulary, entry)
	}
	for _, k := range e.Keys {
		key := Key{Secret: k.Secret, MemberID: k.MemberID, IntegrationID: k.IntegrationID, Scopes: k.Scopes, Revoked: k.Revoked}
		for _, from := range k.Allowlist {
			if from.IsSingleIP() {
				key.IPAllowlist = append(key.IPAllowlist, from.Addr().String())
			} else {
				key.IPAllowlist = append(key.IPAllowlist, from.String())
			}
		}
		if !k.ExpiresAt.IsZero() {
			key.ExpiresAt = minutes.UnixTime(k.ExpiresAt.Unix())
		}
		o.Keys = append(o.Keys, key)
	}
	return o
}
