import { z } from 'zod'
import { configSchema } from './config-schema.ts'

/**
 * The JSON Schema of the config file, for editors: point `"$schema"` of the file at a copy of it. `npm run schema`
 * prints it.
 */
export function configJsonSchema(): object {
  return { title: 'express-model-gateway config', ...z.toJSONSchema(configSchema, { io: 'input' }) }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
