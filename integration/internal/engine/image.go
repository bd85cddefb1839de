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

// OfficialImage is the server that is tested where a registry can be reached and nothing else was asked for.
const OfficialImage = "zookeeper:3.9.4"

// registryPatience is how long a registry may take to show that it is there; the download itself may take longer.
const registryPatience = 8 * time.Second

// ServerImage chooses the image of the servers and says why: what ZKLOCK_TEST_IMAGE names, the official one, or our own.
func (e *Engine) ServerImage(ctx context.Context) (image, why string, err error) {
	if image = os.Getenv("ZKLOCK_TEST_IMAGE"); image != "" {
		return image, "named by ZKLOCK_TEST_IMAGE", e.fetch(ctx, image)
	}
	if err = e.fetch(ctx, OfficialImage); err == nil {
		return OfficialImage, "the official image", nil
	}
	image, err = OwnImage(ctx)
	return image, "built from Debian's packages, no registry can be reached", err
}

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

// OwnImage returns the image that image/build makes, with server and peers; the first call on a machine takes minutes.
// It must be called from the directory of the integration module.
func OwnImage(ctx context.Context) (string, error) {
	var out, trouble bytes.Buffer
	build := exec.CommandContext(ctx, "image/build")
	build.Stdout, build.Stderr = &out, &trouble
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("image/build: %w: %s", err, lastLines(trouble.String(), 5))
	}
	return lastLines(out.String(), 1), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
