// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// DefaultImage is the official image of ZooKeeper.
const DefaultImage = "zookeeper:3.9"

// imageEnv names the image for tests that do not set Options.Image.
const imageEnv = "ZKCONTAINER_IMAGE"

// own matches the images of ZooKeeper 3.8 that this repository builds.
const own = "zklock-integration:bookworm-*"

// registryPatience is how long a registry may take to respond. The download itself may take longer.
const registryPatience = 8 * time.Second

var chosen struct {
	mu    sync.Mutex
	image string // guarded by mu: the result of the first search
}

// Image returns the default image for servers: that of ZKCONTAINER_IMAGE, the official one if it is on this machine, one that
// was built on this machine, or else the official one, which it pulls. Once it has found an image, it always returns that.
func (e *Engine) Image(ctx context.Context) (string, error) {
	chosen.mu.Lock()
	defer chosen.mu.Unlock()
	if chosen.image != "" {
		return chosen.image, nil
	}
	image, err := e.choose(ctx)
	chosen.image = image
	return image, err
}

func (e *Engine) choose(ctx context.Context) (string, error) {
	if image := os.Getenv(imageEnv); image != "" {
		return image, e.Fetch(ctx, image)
	}
	if e.has(ctx, DefaultImage) {
		return DefaultImage, nil
	}
	if image := e.ownImage(ctx); image != "" {
		return image, nil
	}
	if err := e.Fetch(ctx, DefaultImage); err != nil {
		return "", fmt.Errorf("%w; set %s to use another image, or build one with integration/image/build", err, imageEnv)
	}
	return DefaultImage, nil
}

func (e *Engine) has(ctx context.Context, image string) bool {
	_, err := e.API.ImageInspect(ctx, prefixed(image))
	return err == nil
}

// prefixed returns the name under which testcontainers looks for an image: it puts its hub.image.name.prefix in front of images
// that name no registry.
func prefixed(image string) string {
	registry, _, named := strings.Cut(image, "/")
	if named && (strings.ContainsAny(registry, ".:") || registry == "localhost") {
		return image
	}
	return path.Join(testcontainers.ReadConfig().Config.HubImageNamePrefix, image)
}

// ownImage returns the newest image that this repository has built on this machine, or "" if there is none.
func (e *Engine) ownImage(ctx context.Context) string {
	list, err := e.API.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("reference", own)})
	if err != nil {
		return ""
	}
	var newest int64
	var name string
	for _, image := range list.Items {
		if len(image.RepoTags) > 0 && image.Created > newest {
			newest, name = image.Created, image.RepoTags[0]
		}
	}
	return name
}

// Fetch ensures that the engine has an image, and pulls it if necessary.
func (e *Engine) Fetch(ctx context.Context, image string) error {
	if e.has(ctx, image) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	impatience := time.AfterFunc(registryPatience, cancel)
	pull, err := e.API.ImagePull(ctx, prefixed(image), client.ImagePullOptions{})
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	if !impatience.Stop() {
		return fmt.Errorf("image %s: the registry did not answer in %v", image, registryPatience)
	}
	return pull.Wait(ctx)
}
