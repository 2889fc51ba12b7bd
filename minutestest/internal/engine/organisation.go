package engine

// organisation is one organisation and its meetings. No id, reference or index
// reaches across two of them. The world's lock guards it.
type organisation struct {
	world *world
	id    string

	directory
	quota

	lastSeq   uint64
	meetings  map[string]*meeting
	externals map[string]*meeting  // by external id
	everyone  calendar             // the meetings visible to all
	personal  map[string]*calendar // by member or integration: the other meetings it sees
	schedule  schedule
}

// directory is everything in an organisation except its meetings and quota.
// A member in it does not change: an update replaces it.
type directory struct {
	settings        Organisation // without the lists below, the quota and the defaults
	members         map[string]*Member
	memberOrder     []*Member
	emails          map[string]*Member // by folded address
	integrations    map[string]*Integration
	projects        map[string]*Project
	projectOrder    []*Project
	templates       map[string]*Template
	templateOrder   []*Template
	defaultTemplate *Template
	vocabulary      []Term // never modified: transcripts keep it
	maxMembers      int
	maxTerms        int
}
