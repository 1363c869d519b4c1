package golden

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
)

// matrix is a float32 table read from a .npy file.
type matrix struct {
	rows, cols int
	data       []float32 // [rows][cols]
}

func (m *matrix) row(i int) []float32 { return m.data[i*m.cols:][:m.cols] }

// readNPY reads a two-dimensional little-endian float32 array in C order, the only kind golden folders hold (NumPy
// format, version 1 and 2: magic, version, header length, a Python dict as text, the data).
func readNPY(path string) (*matrix, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read logits: %w", err)
	}
	m, err := parseNPY(data)
	if err != nil {
		return nil, fmt.Errorf("read logits %s: %w", path, err)
	}
	return m, nil
}

func parseNPY(data []byte) (*matrix, error) {
	if len(data) < 12 || string(data[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("not a .npy file")
	}
	start, length := 10, int(binary.LittleEndian.Uint16(data[8:]))
	if data[6] >= 2 {
		start, length = 12, int(binary.LittleEndian.Uint32(data[8:]))
	}
	if length < 0 || start+length > len(data) {
		return nil, fmt.Errorf("header of %d bytes in a file of %d", length, len(data))
	}
	header := string(data[start : start+length])
	shape := regexp.MustCompile(`'shape': \((\d+), (\d+)\)`).FindStringSubmatch(header)
	if shape == nil || !regexp.MustCompile(`'descr': '<f4', 'fortran_order': False`).MatchString(header) {
		return nil, fmt.Errorf("header %q is not that of a two-dimensional float32 array", header)
	}
	rows, err1 := strconv.Atoi(shape[1])
	cols, err2 := strconv.Atoi(shape[2])
	body := data[start+length:]
	if err1 != nil || err2 != nil || rows > len(body) || cols > len(body) || rows*cols*4 != len(body) {
		return nil, fmt.Errorf("shape (%s, %s) with %d bytes of data", shape[1], shape[2], len(body))
	}
	m := &matrix{rows: rows, cols: cols, data: make([]float32, rows*cols)}
	for i := range m.data {
		m.data[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[4*i:]))
	}
	return m, nil
}
