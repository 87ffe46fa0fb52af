import { versions } from 'node:process'

/** @throws Error if this Node is older than the package needs, which would fail later and with other words. */
export function requireNode(): void {
  const [major = 0, minor = 0] = versions.node.split('.').map(Number)
  if (major < 22 || (major === 22 && minor < 19))
    throw new Error(`express-model-gateway needs Node 22.19 or later; this is Node ${versions.node}`)
}
