package main

import "net/http"

// allowPages lets web pages of any origin use h, and answers their preflights, which carry no key.
func allowPages(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", "*")
		method := r.Header.Get("Access-Control-Request-Method")
		if r.Method == http.MethodOptions && method != "" {
			header.Set("Access-Control-Allow-Methods", method)
			header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(w, r)
	})
}
