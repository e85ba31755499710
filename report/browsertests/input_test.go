package browsertests

import (
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mouse does something with the mouse at a place of the screen.
func mouse(params input.DispatchMouseEventParams) chromedp.Action[chromedp.Void] {
	return command(input.DispatchMouseEvent, params)
}

// wheel turns the wheel, with keys held. A tilt of exactly 0 would not be sent, which Chromium asks for.
func (p *page) wheel(x, y, dy float64, keys kb.Modifier) {
	p.Helper()
	p.run(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: 0.01,
		DeltaY: dy, Modifiers: int64(keys)}))
	p.do(`await new Promise(f => setTimeout(f, 60))`)
}

// drag pulls from one place to another, with keys held.
func (p *page) drag(x0, y0, x1, y1 float64, keys kb.Modifier) {
	p.Helper()
	p.run(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMousePressed, X: x0, Y: y0,
		Button: input.MouseButtonLeft, ClickCount: 1, Modifiers: int64(keys)}))
	for i := 1.0; i <= 4; i++ {
		p.run(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x0 + (x1-x0)*i/4,
			Y: y0 + (y1-y0)*i/4, Button: input.MouseButtonLeft, Modifiers: int64(keys)}))
	}
	p.run(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseReleased, X: x1, Y: y1,
		Button: input.MouseButtonLeft, ClickCount: 1, Modifiers: int64(keys)}))
	p.do(``)
}

// touch puts fingers on the screen, moves or lifts them.
func touch(kind input.DispatchTouchEventType, points ...[2]float64) chromedp.Action[chromedp.Void] {
	params := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
	for i, p := range points {
		id := float64(i)
		params.TouchPoints = append(params.TouchPoints, &input.TouchPoint{X: p[0], Y: p[1], ID: &id})
	}
	return command(input.DispatchTouchEvent, params)
}

// moved is the mouse at a place, with no button.
func moved(x, y float64) chromedp.Action[chromedp.Void] {
	return mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y})
}
