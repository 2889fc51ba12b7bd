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
// falls due when the sweep has ended.
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
//
// # What each rule is worth
//
// Each rule was removed alone, and the scenarios of this package measured it again. A scenario has
// the figures with the rule, and without it. A delay is from the change of a status until the wait
// is notified (the 99th percentile).
//
//	The window of pages:
//	    waits for the 1,000 newest meetings             41 → 1,117 requests a minute
//	Pages pay together, not each alone:
//	    waits for ten meetings that sink in the list,
//	    below 2,400 newer ones and further              21 → 145 requests a minute
//	A sweep looks one page further for every eight missing meetings (without it: always two pages):
//	    1,000 waits below 2,000 newer meetings          123 → 1,117 requests a minute
//	    10,000 waits below 5,000 newer meetings         630 → 3,553 requests a minute
//	    100 waits below 500 newer meetings              25 → 199 requests a minute
//	The first page costs nothing while a Discovery needs it anyway:
//	    Follow with one meeting that gets no audio      2 → 15 GETs in an hour
//	An expected meeting has no GET until a sweep has ended without it (without: after 1.25 cycles):
//	    Follow over 20,000 meetings, 1,000 unfinished   delay of 33 → 66 s
//	    1,000 waits, each request takes 3 s             92 → 588 requests a minute
//	A sweep that takes longer than GETs would ends, or puts nothing off if a Discovery needs it:
//	    300 waits, each page takes 20 s                 delay of 46 → 133 s
//	    Follow, each page takes 16 s                    delay of 47 → 79 s
//	A list with 429s for a minute, while GETs have none, is left alone for five minutes:
//	    300 waits, the list has 429s for an hour        delay of 100 → 232 s if these 429s count
//	                                                    like other failures, 3,590 s if they never
//	                                                    end a sweep
//	A page and a GET that are both due alternate:
//	    waits for the 10,000 newest meetings            delay of 30 → 121 s, 416 → 864 requests a
//	                                                    minute if GETs come first; a newcomer waits
//	                                                    for a whole sweep if pages do
//	The cycle grows with the square root of the number of requests (without: linearly):
//	    1,000 waits below 13,000 newer meetings         delay of 59 → 102 s, 1,117 → 660 requests
//	                                                    a minute
//	No more than eight requests a second, unless a cycle needs more:
//	    waits for the 1,000 newest meetings             41 → 72 requests a minute
//	    1,000 waits for every fourth of 4,000 meetings,
//	    the service accepts 120 requests a minute       delay of 79 → 224 s
//	A meeting that changes rarely is polled rarely:
//	    Follow with 70 meetings that never end          2 → 42 requests a minute
//	An outage pauses requests, and one at a time finds its end:
//	    1,000 waits while all requests fail             3 → 1,122 requests a minute
//	    1,000 waits in the ten minutes after that       42 → 80 requests a minute
//	Fewer than five waits begin no sweep:
//	    four waits below the first page                 8 → 10 requests a minute
//	The first two cycles of a Poller have a phase:
//	    500 Clients that begin together                 10 % → 104 % of a cycle's requests fall into
//	                                                    one second
//	The pace after a 429 (in internal/rest):
//	    ten processes that need all the requests
//	    which the service accepts                       219 → 3,220 requests a minute
//
// Two rules show in no scenario, but in the tests of the plan: newcomers keep the order in which
// they came, and a GET that got a 429 keeps its time. Otherwise a newcomer could go to the end of
// the line again and again.
//
// No rule makes requests late after an outage: a GET that failed is made again after an interval,
// and a page after half a minute at most (both later only if a Retry-After says so), and any good
// response ends a pause.
package poll
