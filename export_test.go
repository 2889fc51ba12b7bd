package minutes

// SharedTransport is the transport of Clients without one of their own.
var SharedTransport = sharedTransport

// StorageTransport is the transport of their uploads.
var StorageTransport = storageTransport
