package audio

const id3v2HeaderSize = 10

// id3v2Size returns the size of the ID3v2 tag at the start of window, header and footer included, or 0 if there is
// none. The window holds at least the tag's header.
func id3v2Size(window []byte) uint64 {
	h := window[:id3v2HeaderSize]
	if string(h[:3]) != "ID3" || h[3] == 0xFF || h[4] == 0xFF {
		return 0
	}
	size := uint64(id3v2HeaderSize)
	if h[5]&0x10 != 0 { // a footer repeats the header
		size += id3v2HeaderSize
	}
	var body uint64
	for _, b := range h[6:] { // a synchsafe integer: seven bits a byte
		if b >= 0x80 {
			return 0
		}
		body = body<<7 | uint64(b)
	}
	return size + body
}
