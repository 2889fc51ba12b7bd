package minutestest

import (
	"errors"
	"fmt"
	"io"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The types that describe what a Server holds. Package world has their fields.
type (
	// World is what a [Server] begins with: organisations with their people, keys and settings. Its
	// fields have the same names in Go as in this JSON, in which all but ids and secrets may be left
	// out; see [LoadWorld]:
	//
	//	{"stages":{"prepare":"20ms","transcribe":"50ms","write":"50ms"}, "page_sizes":[10,0],
	//	 "organisations":[{"id":"org_acme","name":"Acme","credits":100,"transcribe_seconds":36000,"next_reset_at":"2026-12-01",
	//	  "max_members":1000,"max_terms":500,"suspended":false,"expired":false,"api_disabled":false,"personal_keys_disabled":false,
	//	  "members":[{"id":"emp_ada","name":"Ada Lovelace","email":"ada@acme.example","role":"","description":"","status":"active","admin":true}],
	//	  "integrations":[{"id":"int_ci","name":"CI","default_visibility":"organisation","inactive":false}],
	//	  "projects":[{"id":"prj_apollo","name":"Apollo","archived":false}],
	//	  "templates":[{"id":"tpl_standard","name":"Standard minutes","source":"service","description":"","is_default":true,"version":1}],
	//	  "vocabulary":[{"term":"Kubernetes","variants":[{"text":"cooper netties","source":"auto"}]}],
	//	  "keys":[{"secret":"key_ci","integration_id":"int_ci","scopes":["meetings:read"],"ip_allowlist":["10.0.0.0/8"],"expires_at":1,"revoked":false}],
	//	  "meetings":[{"title":"Weekly","creator_id":"emp_ada","status":"created","count":3}]}]}
	World = world.World
	// Stages are how long a meeting stays in each status between its audio and its minutes.
	Stages = world.Stages
	// Organisation is one customer of the service, with everything that belongs to it.
	Organisation = world.Organisation
	// Member is a person of an organisation.
	Member = world.Member
	// Integration is a program that an administrator has given access.
	Integration = world.Integration
	// Project groups meetings.
	Project = world.Project
	// Template shapes minutes.
	Template = world.Template
	// Key is an API key: a member's own (a personal key) or an integration's.
	Key = world.Key
	// WorldMeeting describes a meeting that a [Server] begins with, or many of the same kind;
	// [Server.AddMeetings] adds more.
	WorldMeeting = world.MeetingSpec
	// Script says what becomes of meetings; see [Server.Script].
	Script = world.Script
	// Meeting is everything about one meeting, including the parts that no client is shown.
	Meeting = world.Meeting
	// Transition is a change of a meeting's status.
	Transition = world.Transition
	// Audio is a recording as it arrived. [WithAudio] keeps its bytes, too.
	Audio = world.Audio
)

// LoadWorld reads a World as JSON and checks it. The error names the path of each invalid value:
//
//	organisations[0].keys[1].member_id: no member "emp_x"
//
// A World that is read has an organisation at least. A field that does not exist, and anything
// after the World, are errors, because a typing error must not pass for a default.
func LoadWorld(r io.Reader) (World, error) {
	var w World
	data, err := io.ReadAll(r)
	if err == nil {
		err = world.Decode(data, &w)
	}
	if err == nil {
		err = engine.Check(w)
	}
	if err == nil && len(w.Organisations) == 0 {
		err = errors.New("organisations: at least one expected")
	}
	if err != nil {
		return World{}, fmt.Errorf("world: %w", err)
	}
	return w, nil
}
