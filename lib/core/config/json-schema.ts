import { z } from 'zod'
import { configSchema } from './config-schema.ts'

/**
 * Returns the JSON Schema of the config file. Set `"$schema"` of the file to the path of a copy, and your editor checks
 * the file. `npx express-model-gateway --schema` prints it.
 */
export function configJsonSchema(): object {
  return { title: 'express-model-gateway config', ...z.toJSONSchema(configSchema, { io: 'input' }) }
}
