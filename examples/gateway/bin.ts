#!/usr/bin/env node
import module from 'node:module'
import { versions } from 'node:process'
import { fileURLToPath } from 'node:url'

// Before anything is imported that an older Node cannot read.
const [major = 0, minor = 0] = versions.node.split('.').map(Number)
if (major > 22 || (major === 22 && minor >= 19)) {
  // The next start finds its code compiled. The folder of the package has the same owner as the code; without write access
  // there is no cache. Threads and workers find its place in the environment.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../.cache', import.meta.url))
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
  await import('./command.ts')
} else {
  console.error(`express-model-gateway needs Node 22.19 or later; this is Node ${versions.node}`)
  process.exitCode = 1
}
