// Package poll decides when to poll which meeting, for any number of waits at once, and does it.
//
// It has one idea: each awaited meeting is due for a GET at one time, and a sweep of list pages
// puts off the GETs of the meetings that it shows. A poll is a GET of one meeting; a list page
// shows up to fifty.
//
// Read the files in this order. watch.go, window.go and plan.go are pure: they have no
// clock, lock or network.
//
//   - service.go: what a response or a failure says. All other files use its kinds of failures.
//   - watch.go: one meeting. It is in one of four states (a newcomer, due, under way, or expected
//     on a page), and the state says when its GET is due.
//   - window.go: which pages are worth reading, and what the outcome of a page changes.
//   - plan.go: which request comes next, and what the outcome of a GET changes.
//   - poller.go, subscription.go: the Poller owns the lock, the timer and the requests. It
//     publishes what responses show to the subscriptions, one for each wait, and judges nothing.
//   - discovery.go: a Discovery, made for the client's Follow, finds new meetings on the pages.
//
// scenarios_test.go says what each rule is worth, beside the scenarios that measure it.
//
// For example, somebody begins to wait for three meetings. As newcomers they are due at once, so
// each gets a GET, an eighth of a second after the last one. The first good response makes a meeting
// due thirty seconds later (up to nine more in the first two cycles after nobody waited: see
// plan.phase). Fewer than five meetings are not worth a page, so each goes on with a GET every
// thirty seconds.
//
// If seven waits begin together, the first gets a GET, and the page is already the second request,
// because from the fifth meeting on a sweep begins as soon as any GET is due, a newcomer's too.
// While the page is under way, the GETs of the others go on. Say that it shows six of the seven. It
// saves six GETs and costs one request, so it pays, and is read every thirty seconds instead: those
// of the six that have no GET under way then become expected, and the others after the next sweep.
// The seventh has a GET every thirty seconds. If the page no longer shows one of the six, that one
// falls due when the sweep has ended. The page may be old, so after each sweep one of the six has a
// GET nevertheless, if its last one is more than five minutes old.
//
// With many waits, everything is seen once in a cycle. It takes thirty seconds, or more if they
// need more requests than fit into that (see cycleOf).
//
// # Traps
//
// Each of these once caused a collapse. Test them before anything else.
//
//  1. A 404 or a rejection of a GET is a success of the service. If it counts as a failure, it
//     becomes an outage.
//  2. The time of the next sweep is computed when it is asked for (began plus the present cycle).
//     It is never stored when the sweep begins.
//  3. After a 429, GETs must not replace pages: otherwise ten processes collapse into 27,000 GETs.
//  4. If only the list is limited, only pages back off, and the list's Retry-After must not stop
//     GETs.
//  5. Back-pressure counts the requests that wait to be sent (two at most), and not only those
//     under way: otherwise 29 are sent in a second after a pause.
//  6. If the last subscription leaves and another joins while a GET is under way, the meeting must
//     not be polled twice.
//  7. Callbacks of the user on other goroutines race with the loop's body.
//  8. A status may come with an Updated that is lower than that of the status before, because the
//     service's machines have clocks of their own. A wait that drops such a snapshot never ends.
//  9. A meeting that leaves or joins during a sweep must not change which meetings the sweep looks
//     for: otherwise it stops a page too early, or reads on for nothing.
//  10. Only GETs find out that the list stands still. If pages could put off the GETs of all meetings
//     for ever, waits would be forgotten.
//
// No rule makes requests late after an outage: a GET that failed is made again after an interval,
// and a page after half a minute at most (both later only if a Retry-After says so), and any good
// response ends a pause.
package poll
