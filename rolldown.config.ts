/**
 * Builds `dist` from `lib`: a file for each public subpath, and what they share in `dist/shared`. Then `dist/gateway`
 * from the assembled gateway, and the library of the console's charts. A package of few files loads in half the time of one with a file for each source. The
 * types come from `tsc`.
 */
import { readFileSync } from 'node:fs'
import { defineConfig } from 'rolldown'

const SOURCE = '@express-model-gateway/source'
const { exports, imports } = JSON.parse(
  readFileSync(new URL('package.json', import.meta.url), 'utf8'),
) as Record<'exports' | 'imports', Record<string, Record<string, string>>>

const sources = [...Object.values(exports), ...Object.values(imports)]
  .map((conditions) => conditions[SOURCE] ?? '')
  .filter((file) => file.startsWith('./lib/'))

const lib = defineConfig({
  input: Object.fromEntries(sources.map((file) => [file.slice('./lib/'.length, -'.ts'.length), file])),
  platform: 'node',
  // Packages stay outside, but for two that load in a fraction of the time: zod without its texts in 60 languages, and kysely
  // as a part of one file, of which it has 257.
  external: /^(?!zod$|kysely(\/migration)?$)[^./]/,
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'shared/[name]-[hash].js',
    // The declarations have the documentation, and lead to the sources.
    comments: { jsdoc: false },
  },
  // Without comments with the names of the source files.
  experimental: { attachDebugInfo: 'none' },
})

const gateway = defineConfig({
  input: ['bin', 'index', 'start', 'config/config-thread'].map((name) => `examples/gateway/${name}.ts`),
  platform: 'node',
  // The toolkit stays outside: an app that embeds the gateway imports the same one. Zod is built in, as in the toolkit.
  external: /^(?!zod$)[^./]/,
  // Unlike those of the toolkit, its files do something when they are loaded.
  treeshake: { moduleSideEffects: (id) => id.endsWith('.ts') },
  output: {
    dir: 'dist/gateway',
    format: 'esm',
    comments: { jsdoc: false },
    // Beside the entries, because the console is found beside the script that serves it.
    chunkFileNames: '[name]-[hash].js',
  },
  experimental: { attachDebugInfo: 'none' },
})

const charts = defineConfig({
  input: 'uplot/dist/uPlot.esm.js',
  output: { file: 'dist/gateway/console/vendor/uplot.js', format: 'esm', minify: true },
})

export default [lib, gateway, charts]
