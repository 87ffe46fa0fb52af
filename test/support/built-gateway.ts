import { globSync, statSync } from 'node:fs'

/** In the environment: tests start the gateway as `npm run build` has made it, which takes half the time. */
export const BUILT_GATEWAY = 'TEST_BUILT_GATEWAY'

const BUILT = 'dist/gateway/start.js'
const SOURCES = ['lib/**/*.ts', 'examples/gateway/**/*', 'package.json', 'rolldown.config.ts']

/** Whether `dist` is there and no source has changed since. Paths are from the folder of the package. */
export function isBuilt(): boolean {
  const builtAt = statSync(BUILT, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return globSync(SOURCES).every((path) => statSync(path).mtimeMs <= builtAt)
}
