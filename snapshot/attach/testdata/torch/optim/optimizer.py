hooks = []
register_optimizer_step_post_hook = hooks.append


def step():
    for hook in hooks:
        hook(None, (), {})
