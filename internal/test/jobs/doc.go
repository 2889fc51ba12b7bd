// Package jobs has only tests. They run Process as a job of River, asynq, NATS JetStream, cron and
// Temporal, in worker processes that are killed, stopped, frozen and timed out. After each run there must
// be one meeting with one recording, and the job must be done. The table in runs.txt is what these tests
// saw, and docs/jobs.md has the settings that they led to.
//
// The tests use real time, so they run only with MINUTES_LONG=1, as .ci/run does. They skip an engine
// whose server is not installed:
//
//	apt-get install redis-server postgresql
//	MINUTES_LONG=1 go test -parallel 20 -v .
//
// Temporal's server takes so long to build that the tests use one that runs already:
//
//	cd examples/temporal/devserver && go run . # prints TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE
package jobs
