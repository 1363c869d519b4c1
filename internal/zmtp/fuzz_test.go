package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// FuzzFrame holds that no bytes make the reader keep more than its bound or panic, and that what it reads is written as it
// was, up to the choice between short and long sizes.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x00\x05hello"))
	f.Add([]byte("\x04\x06\x05READY"))
	f.Add(binary.BigEndian.AppendUint64([]byte{3}, 300))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			got, err := readFrame(r)
			if err != nil {
				if len(data) == 0 && err != io.EOF {
					t.Errorf("readFrame of nothing: %v", err)
				}
				return
			}
			if len(got.body) > maxFrameBytes {
				t.Fatalf("%d bytes", len(got.body))
			}
			_, _, _ = splitCommand(got)
			_, _ = findProperty(got.body, "Socket-Type")
			var b bytes.Buffer
			w := bufio.NewWriter(&b)
			if err := writeFrame(w, got.flags&^flagLong, got.body); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			again, err := readFrame(bufio.NewReader(&b))
			if err != nil || again.flags&^flagLong != got.flags&^flagLong || !bytes.Equal(again.body, got.body) {
				t.Fatalf("%v written and read is %v, %v", got, again, err)
			}
		}
	})
}
