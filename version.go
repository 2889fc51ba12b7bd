package minutes

// version of this package, for the User-Agent header.
const version = "0.1.0"
