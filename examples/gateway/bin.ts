#!/usr/bin/env node
import { versions } from 'node:process'

// Before anything is imported that an older Node cannot read.
const [major = 0, minor = 0] = versions.node.split('.').map(Number)
if (major > 22 || (major === 22 && minor >= 19)) {
  await import('./command.ts')
} else {
  console.error(`express-model-gateway needs Node 22.19 or later; this is Node ${versions.node}`)
  process.exitCode = 1
}
