"""The JavaScript functions of a job, run in V8: see `engine.Engine.call`."""
