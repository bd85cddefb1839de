// Package images chooses and builds the images that the tests run.
package images

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/zklock-go/zklock/zkcontainer"
)

// suites are the versions of ZooKeeper that are tested, and the Debian suites that have them. The first is the default.
var suites = []struct{ version, suite string }{{"3.8", "bookworm"}, {"3.9", "trixie"}, {"sid", "sid"}}

// peersSuite is the one whose image has other languages' clients.
const peersSuite = "bookworm"

// Servers chooses the image of the servers and says why: the one that ZKLOCK_TEST_IMAGE names, or our own of the version
// that ZKLOCK_TEST_ZOOKEEPER names.
func Servers(ctx context.Context, e *zkcontainer.Engine) (image, why string, err error) {
	if image = os.Getenv("ZKLOCK_TEST_IMAGE"); image != "" {
		return image, "named by ZKLOCK_TEST_IMAGE", e.Fetch(ctx, image)
	}
	wanted := os.Getenv("ZKLOCK_TEST_ZOOKEEPER")
	for _, s := range suites {
		if s.version == wanted || wanted == "" {
			image, err = build(ctx, s.suite)
			return image, "built from Debian's packages", err
		}
	}
	return "", "", fmt.Errorf("ZKLOCK_TEST_ZOOKEEPER=%s: no such version, there are %v", wanted, suites)
}

// Peers returns the image with other languages' clients.
func Peers(ctx context.Context) (string, error) { return build(ctx, peersSuite) }

// build returns the image that image/build makes of a suite. The first call on a machine takes minutes. It must be called
// from the directory of the integration module.
func build(ctx context.Context, suite string) (string, error) {
	var out, trouble bytes.Buffer
	script := exec.CommandContext(ctx, "image/build", suite)
	script.Stdout, script.Stderr = &out, &trouble
	if err := script.Run(); err != nil {
		return "", fmt.Errorf("image/build %s: %w: %s", suite, err, lastLines(trouble.String(), 5))
	}
	return lastLines(out.String(), 1), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
