// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

func TestAHoldAppearsAndGoes(t *testing.T) {
	s := openShop(t, false)
	p := open(t, 1000, 700, s.link)
	p.shows("#no-locks", "No locks are in use")
	p.shows("#status", "live")

	first, second := s.client("first worker"), s.client("second worker")
	hold, err := first.Mutex("/orders/42").Lock(t.Context())
	require.NoError(t, err)
	p.shows("#locks .name", "/orders/42")
	p.shows("#locks .owner", "first worker")
	next := make(chan *zklock.Hold, 1)
	// Owned by the test, which waits; ends with the grant.
	go func() {
		hold, err := second.Mutex("/orders/42").Lock(t.Context())
		assert.NoError(t, err)
		next <- hold
	}()
	p.shows("#n-waiting", "1")

	p.do(chromedp.Click("#locks a"))
	p.shows("#path", "/orders/42")
	p.shows("#holders .title", "first worker")
	p.shows("#queue .title", "second worker")
	p.until(`document.querySelectorAll("#chart .holds").length > 0 && document.querySelectorAll("#chart .waits").length > 0`)
	require.NoError(t, hold.Unlock(t.Context()))
	p.shows("#holders .title", "second worker")
	p.until(`document.querySelectorAll("#queue .card").length === 0`)
	require.NoError(t, (<-next).Unlock(t.Context()))
	p.until(`document.querySelectorAll(".card").length === 0`)
	p.shows("#chart text", "second worker")
	assert.Zero(t, value[int](p, `document.querySelectorAll("button.danger:enabled, .acts button").length - 1`), "nothing can be changed")
	p.do(chromedp.NavigateBack())
	p.until(`!document.querySelector("#overview").hidden`)
}

// A contender chooses its label, and must not be able to cover how long it has held.
func TestALongLabelCoversNothing(t *testing.T) {
	s := openShop(t, false)
	long := strings.Repeat("W", 100)
	hold, err := s.client(long).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	p := open(t, 1000, 700, s.link)
	p.shows("#locks .owner", "WWW")
	assert.True(t, value[bool](p, `(() => { const range = document.createRange(); range.selectNodeContents(document.querySelector("#locks .owner"));
		return range.getBoundingClientRect().right <= document.querySelector("#locks .for").getBoundingClientRect().left })()`), "the label reaches into the next column")
	p.do(chromedp.Click("#locks a"))
	p.until(`document.querySelectorAll("#chart text").length > 1`)
	assert.True(t, value[bool](p, `(() => { const bars = [...document.querySelectorAll("#chart .holds")], names = [...document.querySelectorAll("#chart text:not(.tick)")];
		const left = Math.min(...bars.map(b => b.getBoundingClientRect().left));
		return names.every(n => n.getBoundingClientRect().right <= left || left < 0) })()`), "a name reaches into the bars")
	require.NoError(t, hold.Unlock(t.Context()))
}

// A session can hold and wait at the same lock: it must be seen to hold.
func TestASessionThatHoldsAndWaitsIsDrawnAsHolding(t *testing.T) {
	s := openShop(t, false)
	client := s.client("worker")
	hold, err := client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	// Owned by the test, which waits; ends with ctx.
	go func() {
		defer close(done)
		client.Mutex("/l").Lock(ctx)
	}()
	p := open(t, 1000, 700, s.link+"#/l")
	p.until(`document.querySelectorAll("#holders .card").length === 1 && document.querySelectorAll("#queue .card").length === 1`)
	p.until(`document.querySelectorAll("#chart .waits").length > 0`)
	p.until(`(() => { const bars = [...document.querySelectorAll("#chart rect.waits, #chart rect.holds")]; const last = bars[bars.length - 1];
		return last.classList.contains("holds") && bars.findLastIndex(b => b.classList.contains("waits")) < bars.length - 1 })()`)
	cancel()
	<-done
	require.NoError(t, hold.Unlock(t.Context()))
}

// At many hand-offs a second cards do not glide, and none moves under the pointer.
func TestCardsDoNotMoveUnderThePointer(t *testing.T) {
	s := openShop(t, true)
	clients := []*zklock.Client{s.client("a"), s.client("b"), s.client("c")}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, c := range clients {
		// Owned by the test, which waits; ends with ctx.
		all.Go(func() {
			for ctx.Err() == nil {
				_ = c.Mutex("/l").Do(ctx, func(ctx context.Context) error {
					time.Sleep(300 * time.Millisecond)
					return nil
				})
			}
		})
	}
	p := open(t, 1000, 700, s.link+"#/l")
	p.until(`document.querySelectorAll("#queue .card .acts button").length > 0`)
	value[bool](p, `(() => { window.glides = 0; const animate = Element.prototype.animate; Element.prototype.animate = function (...a) { if (this.matches(".card")) glides++; return animate.apply(this, a) }; return true })()`)
	time.Sleep(5 * time.Second)
	glides := value[int](p, "glides")
	t.Logf("%d animations in five seconds", glides)
	assert.LessOrEqual(t, glides, 18, "at most three cards a second")
	var at struct{ X, Y float64 }
	at.X = value[float64](p, `document.querySelector("#queue .acts button").getBoundingClientRect().x + 5`)
	at.Y = value[float64](p, `document.querySelector("#queue .acts button").getBoundingClientRect().y + 5`)
	p.do(chromedp.MouseEvent("mouseMoved", at.X, at.Y))
	p.until(`(() => { const c = document.querySelector(".card:hover"); if (!c || !c.querySelector(".acts button")) return false;
		window.card = c; window.top0 = c.getBoundingClientRect().top; return true })()`)
	p.until(`card.classList.contains("gone") && [...card.querySelectorAll("button")].every(b => b.disabled)`)
	assert.True(t, value[bool](p, `card.isConnected && card.getBoundingClientRect().top === top0`), "it has moved under the pointer")
	p.do(chromedp.MouseEvent("mouseMoved", 1, 1))
	p.until(`!document.querySelector(".card.gone")`)
	cancel()
	all.Wait()
}

func TestAnUnusedPathIsShownAsUnused(t *testing.T) {
	s := openShop(t, false)
	p := open(t, 1000, 700, s.link+"#/no/such/lock")
	p.shows("#unseen", "This path may not exist")
	assert.NotContains(t, value[string](p, `getComputedStyle(document.querySelector("#holders"), "::before").content`), "free")
}

// While no server answers, the clocks of holders stand still.
func TestClocksStopInAnOutage(t *testing.T) {
	s := openShop(t, false)
	hold, err := s.client("worker").Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	p := open(t, 1000, 700, s.link)
	p.shows("#locks .owner", "worker")
	s.since.Store(time.Now().UnixMilli())
	p.shows("#away", "No server has answered since")
	time.Sleep(time.Second) // the clocks are drawn five times a second
	shown := value[string](p, `document.querySelector("#locks .for").textContent`)
	time.Sleep(time.Second)
	assert.Equal(t, shown, value[string](p, `document.querySelector("#locks .for").textContent`))
	s.since.Store(0)
	p.until(`document.querySelector("#away").hidden`)
	require.NoError(t, hold.Unlock(t.Context()))
}

// Combining marks that are stacked were drawn over the lines above and below.
func TestStackedMarksStayInTheirLine(t *testing.T) {
	s := openShop(t, false)
	hold, err := s.client("high" + strings.Repeat("\u0301", 40) + " and low" + strings.Repeat("\u0316", 40)).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	p := open(t, 1000, 700, s.link)
	p.shows("#locks .owner", "high")
	assert.NotContains(t, value[string](p, `document.querySelector("#locks .owner").textContent`), strings.Repeat("\u0301", 4))
	for _, selector := range []string{"#locks .by", "#locks .name"} {
		assert.Equal(t, "clip", value[string](p, `getComputedStyle(document.querySelector("`+selector+`")).overflowY`), selector)
	}
	require.NoError(t, hold.Unlock(t.Context()))
}

func TestHostileTextIsInert(t *testing.T) {
	s := openShop(t, false)
	hostile := `<img src=x onerror="window.hit=1"><script>window.hit=1</script>"'` + "\u202e"
	path := "/" + `a<b>"'&amp;` + "\u202e" + `?q=1#%41+ü`
	_, err := s.client(hostile).Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	p := open(t, 1000, 700, s.link)
	p.shows("#locks .owner", `<img src=x onerror="window.hit=1">`)
	p.do(chromedp.Click("#locks a"))
	p.shows("#path", `/a<b>"'&amp;\u202e?q=1#%41+ü`)
	p.shows("#holders .title", "<script>")
	p.until(`document.querySelectorAll("#chart title").length > 0`)
	for _, wrong := range []string{`img[src=x]`, `main script`, `main b b`} {
		assert.Zero(t, value[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", wrong)), wrong)
	}
	assert.Equal(t, "undefined", value[string](p, "typeof window.hit"))
	assert.NotContains(t, value[string](p, "document.documentElement.textContent + document.title"), "\u202e")
	// The policy holds, should a mistake ever let markup in.
	markup, err := json.Marshal(hostile)
	require.NoError(t, err)
	assert.Equal(t, "refused", value[string](p, `(() => { try { document.body.innerHTML = `+string(markup)+`; return "taken" } catch { return "refused" } })()`))
	p.shows("#path", "/a<b>")
}

// active is the text of the element that has the focus.
const active = `document.activeElement.textContent`

func TestThePageWorksWithoutAMouse(t *testing.T) {
	s := openShop(t, false)
	p := open(t, 1000, 700, s.link)
	for i, path := range []string{"/a", "/b"} { // the one that is held longer comes first
		_, err := s.client(fmt.Sprint("worker ", i)).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		p.shows("#locks .name", path)
	}
	p.press("j")
	p.until(active + `.includes("/a")`)
	p.press(kb.ArrowDown)
	p.until(active + `.includes("/b")`)
	p.press("k")
	p.until(active + `.includes("/a")`)
	p.press(kb.Enter)
	p.shows("#path", "/a")
	p.press(kb.Escape)
	p.until(`location.hash === "#/" && document.querySelectorAll("#locks a").length === 2`)

	p.press("/")
	p.until(`document.activeElement.id === "search"`)
	p.press("worker 1?t")
	p.shows("#no-locks", "No lock in use matches")
	p.press(kb.Escape)
	p.press("worker 1")
	p.until(`document.querySelectorAll("#locks a").length === 1`)
	p.press(kb.ArrowDown)
	p.until(active + `.includes("/b")`)

	p.press("t")
	p.until(`document.documentElement.dataset.theme === "dark"`)
	p.press("?")
	p.until(`document.querySelector("#keys").open`)
	p.press(kb.Escape)
	p.until(`!document.querySelector("#keys").open`)
	p.do(chromedp.Navigate(s.link + "#/b"))
	p.shows("#path", "/b")
	p.until(`document.documentElement.dataset.theme === "dark"`)
}

func TestThePageFitsAPhone(t *testing.T) {
	s := openShop(t, false)
	client := s.client("a worker whose label is long enough to need several lines on a phone, if it were not broken")
	path := "/a/rather/long/path/to/a/lock/that/has/no/place/on/a/small/screen/unless/it/is/broken/somewhere"
	_, err := client.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	p := open(t, 320, 640, s.link)
	p.until(`document.querySelectorAll("#locks a").length === 1`)
	assert.True(t, value[bool](p, `document.documentElement.scrollWidth <= 320`), "it scrolls sideways")
	p.do(chromedp.Click("#locks a"))
	p.until(`document.querySelectorAll("#holders .card").length === 1 && document.querySelectorAll("#chart .holds").length > 0`)
	assert.True(t, value[bool](p, `document.documentElement.scrollWidth <= 320`), "it scrolls sideways")
}

func TestAContenderIsEvictedAfterAQuestion(t *testing.T) {
	s := openShop(t, true)
	hold, err := s.client("hanging worker").Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	p := open(t, 1000, 700, s.link+"#/l")
	p.until(`document.querySelectorAll("#holders .acts button").length === 2`)
	assert.NotContains(t, value[string](p, "location.href"), "key", "the key must not stay in the address")
	ask, evict := `#holders .acts button:nth-child(1)`, `#holders .acts button:last-child`
	p.do(chromedp.Click(evict))
	p.until(`document.querySelector("#ask").open && document.activeElement.id === "ask-no"`)
	p.shows("#ask-who", "hanging worker")
	p.press(kb.Enter) // which is no
	p.until(`!document.querySelector("#ask").open`)
	require.NoError(t, hold.Check())

	p.do(chromedp.Click(ask), chromedp.Click("#ask-yes"))
	<-hold.Revoked()
	p.shows("#holders .mark", "asked to release")
	p.do(chromedp.Click(evict), chromedp.Click("#ask-yes"))
	<-hold.Context().Done()
	p.until(`!document.querySelector("#ask").open && document.querySelectorAll(".card").length === 0`)

	other := open(t, 1000, 700, s.link[:len(s.link)-len("?key=")-26]+"#/l")
	_, err = s.client("another worker").Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	other.shows("#holders .title", "another worker")
	assert.Zero(t, value[int](other, `document.querySelectorAll("#holders .acts button").length`), "without the link")
}

func TestALongQueueAndManyLocksStayFluid(t *testing.T) {
	start := time.Now()
	s := openShop(t, false)
	for i := range 5000 {
		require.NoError(t, s.PutNode(fmt.Sprintf("/many/%d/_c_7a6b6c0123456789abcdef01234567ab-lock-0000000000", i), nil))
	}
	for i := range 10_000 {
		require.NoError(t, s.PutNode(fmt.Sprintf("/long/_c_7a6b6c0123456789abcdef%010d-lock-%010d", i, i), nil))
	}
	t.Log(time.Since(start))
	p := open(t, 1000, 700, s.link)
	p.shows("#n-locks", "5,001")
	p.shows("#n-waiting", "9,999")
	t.Log(time.Since(start))
	assert.Equal(t, 200, value[int](p, `document.querySelectorAll("#locks li").length`))
	p.do(chromedp.Navigate(s.link + "#/long"))
	p.shows("#more-queue", "9,939 more wait")
	value[bool](p, `(() => { window.longest = 0; const render = renderOne; renderOne = () => {
		const began = performance.now(); render(); longest = Math.max(longest, performance.now() - began) }; return true })()`)
	s.DeleteNodes("/long/_c_7a6b6c0123456789abcdef0000000000-lock-0000000000")
	p.shows("#facts", "9,998 wait")
	assert.Equal(t, 61, value[int](p, `document.querySelectorAll(".card").length`))
	t.Logf("the page was drawn in %.1f ms", value[float64](p, "longest"))
}
