package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// suites are the versions of ZooKeeper that are tested, and the Debian suites that have them. The first is the default.
var suites = []struct{ version, suite string }{{"3.8", "bookworm"}, {"3.9", "trixie"}, {"sid", "sid"}}

// peersSuite is the one whose image has other languages' clients.
const peersSuite = "bookworm"

// registryPatience is how long a registry may take to show that it is there. The download itself may take longer.
const registryPatience = 8 * time.Second

// ServerImage chooses the image of the servers and says why: the one that ZKLOCK_TEST_IMAGE names, or our own of the version
// that ZKLOCK_TEST_ZOOKEEPER names.
func (e *Engine) ServerImage(ctx context.Context) (image, why string, err error) {
	if image = os.Getenv("ZKLOCK_TEST_IMAGE"); image != "" {
		return image, "named by ZKLOCK_TEST_IMAGE", e.fetch(ctx, image)
	}
	wanted := os.Getenv("ZKLOCK_TEST_ZOOKEEPER")
	for _, s := range suites {
		if s.version == wanted || wanted == "" {
			image, err = ownImage(ctx, s.suite)
			return image, "built from Debian's packages", err
		}
	}
	return "", "", fmt.Errorf("ZKLOCK_TEST_ZOOKEEPER=%s: no such version, there are %v", wanted, suites)
}

// PeersImage returns the image with other languages' clients.
func PeersImage(ctx context.Context) (string, error) { return ownImage(ctx, peersSuite) }

// fetch makes sure that the engine has an image.
func (e *Engine) fetch(ctx context.Context, image string) error {
	if _, err := e.API.ImageInspect(ctx, image); err == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	impatience := time.AfterFunc(registryPatience, cancel)
	pull, err := e.API.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	if !impatience.Stop() {
		return fmt.Errorf("image %s: the registry did not answer in %v", image, registryPatience)
	}
	return pull.Wait(ctx)
}

// ownImage returns the image that image/build makes of a suite. The first call on a machine takes minutes. It must be called
// from the directory of the integration module.
func ownImage(ctx context.Context, suite string) (string, error) {
	var out, trouble bytes.Buffer
	build := exec.CommandContext(ctx, "image/build", suite)
	build.Stdout, build.Stderr = &out, &trouble
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("image/build %s: %w: %s", suite, err, lastLines(trouble.String(), 5))
	}
	return lastLines(out.String(), 1), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
