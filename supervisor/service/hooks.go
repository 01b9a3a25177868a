package service

import (
	"context"
	"strconv"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/config"
	"understudy/supervisor/unit"
)

// hooks runs the operator's commands on events. Nothing waits for them.
type hooks struct {
	unit  *unit.Unit
	conf  *Conf // as it is in force
	story *story
}

func (h *hooks) onStandby(ctx context.Context, why string) {
	h.run(ctx, "on_standby", h.conf.Hooks.OnStandby, "UNDERSTUDY_REASON="+why)
}

func (h *hooks) onGiveUp(ctx context.Context, why string) {
	h.run(ctx, "on_give_up", h.conf.Hooks.OnGiveUp, "UNDERSTUDY_REASON="+why)
}

// onFence reports the outcome of fencing a former active node.
func (h *hooks) onFence(ctx context.Context, former *election.BreadCrumb, token int64, by fencing.Outcome, err error) {
	result := "dead"
	if err != nil {
		result = "refused"
	}
	h.run(ctx, "on_fence", h.conf.Hooks.OnFence,
		"UNDERSTUDY_FENCED_NODE="+former.Node, "UNDERSTUDY_FENCED_HOST="+former.Host, "UNDERSTUDY_FENCED_TOKEN="+strconv.FormatInt(token, 10),
		"UNDERSTUDY_FENCED_BY="+by.By, "UNDERSTUDY_FENCED_RESULT="+result, "UNDERSTUDY_FENCED_ATTEMPTS="+by.Told())
}

func (h *hooks) run(ctx context.Context, name string, hook config.Hook, facts ...string) {
	h.unit.RunHook(context.WithoutCancel(ctx), name, hook, append(h.unit.Facts(h.story.token), facts...))
}
