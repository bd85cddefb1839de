// SPDX-License-Identifier: Apache-2.0

// Package images chooses and builds the images for the tests.
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

// suites are the tested versions of ZooKeeper, and the Debian suites that contain them. The first is the default.
var suites = []struct{ version, suite string }{{"3.8", "bookworm"}, {"3.9", "trixie"}, {"sid", "sid"}}

// serversSuite is the image of the default version without clients in other languages, for a run on a commit.
const serversSuite = "bookworm-servers"

// peersSuite is the suite whose image contains clients in other languages.
const peersSuite = "bookworm"

// Servers returns the image for the servers, and where it comes from. It is the image in ZKLOCK_TEST_IMAGE, or otherwise one
// built here with the version in ZKLOCK_TEST_ZOOKEEPER.
func Servers(ctx context.Context, e *zkcontainer.Engine) (image, why string, err error) {
	if image = os.Getenv("ZKLOCK_TEST_IMAGE"); image != "" {
		return image, "named by ZKLOCK_TEST_IMAGE", e.Fetch(ctx, image)
	}
	wanted := os.Getenv("ZKLOCK_TEST_ZOOKEEPER")
	if wanted == "" && os.Getenv("ZKLOCK_TEST_COMMIT") != "" {
		image, err = build(ctx, serversSuite)
		return image, "built from Debian's packages", err
	}
	for _, s := range suites {
		if s.version == wanted || wanted == "" {
			image, err = build(ctx, s.suite)
			return image, "built from Debian's packages", err
		}
	}
	return "", "", fmt.Errorf("ZKLOCK_TEST_ZOOKEEPER=%s: unknown version, use one of %v", wanted, suites)
}

// Peers returns the image with clients in other languages.
func Peers(ctx context.Context) (string, error) { return build(ctx, peersSuite) }

// build runs image/build for a suite and returns the image. The first call on a machine takes minutes. The current directory
// must be that of the integration module.
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
