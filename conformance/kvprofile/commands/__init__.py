"""Commands of `kvconform` whose room this is; `kvconform.commands.options` has their options."""
