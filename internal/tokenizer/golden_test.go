package tokenizer

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/testmodel"
)

// sharedDir returns the folder of golden data: $QUIRE_SHARED, or ../shared beside the module. Tests that need it are
// skipped where it does not exist.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("QUIRE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "golden")); err != nil {
		t.Skipf("no golden data: %v", err)
	}
	return dir
}

// realModel loads the tokenizer of one of the published models, or skips the test where the file does not exist.
func realModel(t testing.TB, name string) *Tokenizer {
	t.Helper()
	return loadFile(t, testmodel.Path(t, name))
}

func loadFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := FromGGUF(&f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// publishedModels are the files whose vocabularies the golden data was made with.
var publishedModels = map[string]string{
	"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
	"qwen2":   "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
	"gemma3":  "gemma-3-270m.Q4_K_M.gguf",
}

// goldenString is a line of strings.jsonl or tokenizer.jsonl.
type goldenString struct {
	ID           int     `json:"id"`
	Category     string  `json:"category"`
	Text         string  `json:"text"`
	TextHex      string  `json:"text_hex"`
	IDs          []int32 `json:"ids"`
	IDsSpecial   []int32 `json:"ids_special"`
	Bytes        string  `json:"bytes_hex"`
	BytesSpecial string  `json:"bytes_special_hex"`
	BOS          int     `json:"n_bos"`
	RoundTrip    *bool   `json:"roundtrip"`
}

func readGolden(t *testing.T, path string) []goldenString {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []goldenString
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g goldenString
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		if g.TextHex != "" {
			g.Text = string(unhex(t, g.TextHex))
		}
		all = append(all, g)
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%s: %d cases, %v", path, len(all), lines.Err())
	}
	return all
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkGolden compares both ways of encoding, and the bytes they decode to.
func checkGolden(t *testing.T, tok *Tokenizer, g goldenString) {
	t.Helper()
	for _, way := range []struct {
		name    string
		options Options
		want    []int32
		bytes   string
	}{
		{"plain", Options{}, g.IDs, g.Bytes},
		{"special", Options{ParseSpecial: true}, g.IDsSpecial, g.BytesSpecial},
	} {
		got := tok.Encode(g.Text, way.options)
		if diff := cmp.Diff(way.want, append([]int32{}, got...)); diff != "" {
			t.Errorf("case %d (%s): Encode(%.80q, %s) −want +got:\n%s", g.ID, g.Category, g.Text, way.name, diff)
			continue
		}
		if g.TextHex == "" {
			continue
		}
		if got := tok.AppendDecode(nil, got, false); string(got) != string(unhex(t, way.bytes)) {
			t.Errorf("case %d (%s, %s): decodes to %x, want %s", g.ID, g.Category, way.name, got, way.bytes)
		}
	}
	withBOS := tok.Encode(g.Text, Options{AddSpecial: true})
	bos := 0
	for bos < len(withBOS) && withBOS[bos] == tok.BOS() {
		bos++
	}
	if g.TextHex != "" && (bos != g.BOS || len(withBOS) != len(g.IDs)+g.BOS) {
		t.Errorf("case %d: AddSpecial gives %d tokens, %d of them BOS; want %d + %d", g.ID, len(withBOS), bos, len(g.IDs), g.BOS)
	}
}

func TestGoldenStrings(t *testing.T) {
	dir := sharedDir(t)
	for name, file := range publishedModels {
		t.Run(name, func(t *testing.T) {
			tok := realModel(t, file)
			for _, g := range readGolden(t, filepath.Join(dir, "golden", "tokenizer", name, "strings.jsonl")) {
				checkGolden(t, tok, g)
			}
		})
	}
}

func TestGoldenVocabularies(t *testing.T) {
	dir := sharedDir(t)
	for name, file := range publishedModels {
		t.Run(name, func(t *testing.T) {
			tok := realModel(t, file)
			var want struct {
				Tokens int     `json:"n_tokens"`
				BOS    int32   `json:"bos"`
				EOS    int32   `json:"eos"`
				AddBOS bool    `json:"add_bos"`
				EOG    []int32 `json:"eog_ids"`
				SHA256 string  `json:"pieces_sha256"`
			}
			data, err := os.ReadFile(filepath.Join(dir, "golden", "tokenizer", name, "vocab.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if tok.VocabSize() != want.Tokens || tok.BOS() != want.BOS || tok.EOS() != want.EOS || tok.AddBOS() != want.AddBOS {
				t.Errorf("size %d, bos %d, eos %d, add bos %t; want %+v", tok.VocabSize(), tok.BOS(), tok.EOS(), tok.AddBOS(), want)
			}
			if diff := cmp.Diff(want.EOG, tok.EOG()); diff != "" {
				t.Errorf("EOG −want +got:\n%s", diff)
			}
			hash := sha256.New()
			for id := range int32(tok.VocabSize()) {
				piece := tok.Piece(id)
				hash.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(piece))))
				hash.Write(piece)
			}
			if got := hex.EncodeToString(hash.Sum(nil)); got != want.SHA256 {
				t.Errorf("SHA-256 of the pieces is %s, want %s", got, want.SHA256)
			}
		})
	}
}

// TestLlamaVocabularies compares with llama.cpp's own conformance data: vocabulary-only files in its models folder, each
// with texts (.inp) and their ids (.out). Set QUIRE_LLAMA_MODELS to that folder.
func TestLlamaVocabularies(t *testing.T) {
	dir := os.Getenv("QUIRE_LLAMA_MODELS")
	if dir == "" {
		t.Skip("QUIRE_LLAMA_MODELS is not set")
	}
	for _, name := range []string{"gpt-2", "starcoder", "refact", "command-r", "mpt", "llama-bpe", "qwen2", "qwen35", "llama-spm", "phi-3"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "ggml-vocab-"+name+".gguf")
			tok := loadFile(t, path)
			inputs, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			outputs, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			texts := strings.Split(string(inputs), "\n__ggml_vocab_test__\n")
			lines := strings.Split(strings.TrimRight(string(outputs), "\n"), "\n")
			for i, line := range lines {
				var want []int32
				for _, field := range strings.Fields(line) {
					var id int32
					if err := json.Unmarshal([]byte(field), &id); err != nil {
						t.Fatal(err)
					}
					want = append(want, id)
				}
				got := tok.Encode(texts[i], Options{})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("Encode(%q) −want +got:\n%s", texts[i], diff)
				}
			}
		})
	}
}
