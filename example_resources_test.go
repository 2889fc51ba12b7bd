package minutes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func ExampleMembersService_Create() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	member, err := client.Members.Create(context.Background(), &minutes.MemberCreateParams{
		Name:        "Grace Hopper",
		Description: "Consultant; knows compilers.", // helps to identify the speaker
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(member.Name, member.Status)
	// Output: Grace Hopper no_account
}

// Members' names by their ids, to show a meeting's participants.
func ExampleMembersService_List() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	members, err := client.Members.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range members {
		if m.Status == minutes.MemberActive {
			fmt.Println(m.ID, m.Name)
		}
	}
	// Output:
	// emp_ada Ada Lovelace
	// emp_ben Ben Okafor
}

func ExampleProjectsService_Create() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	project, err := client.Projects.Create(ctx, &minutes.ProjectCreateParams{Name: "Hermes"})
	if err != nil {
		log.Fatal(err)
	}
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Kick-off", Date: "2026-03-09", ProjectID: project.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(project.Name, m.ProjectID == project.ID)
	// Output: Hermes true
}

func ExampleTemplatesService_List() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	templates, err := client.Templates.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range templates {
		fmt.Println(t.ID, t.Name, t.IsDefault)
	}
	// Output:
	// tpl_standard Standard minutes true
	// tpl_decisions Decisions only false
}

func ExampleUsageService_Get() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	usage, err := client.Usage.Get(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(usage.CreditsRemaining, "credits,", usage.Transcription(), "of audio")
	// Output: 1000 credits, 100h0m0s of audio
}

func ExampleVocabularyService_Add() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	vocabulary, err := client.Vocabulary.Add(context.Background(), "Prometheus")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(vocabulary.Terms)
	// Output: [Kubernetes PostgreSQL Grafana Prometheus]
}

func ExampleVocabularyService_Replace() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	vocabulary, err := client.Vocabulary.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	terms := append(vocabulary.Terms, "Prometheus", "Grafana Loki")
	vocabulary, err = client.Vocabulary.Replace(ctx, terms)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(vocabulary.Terms), "of", vocabulary.MaxTerms)
	// Output: 5 of 500
}
