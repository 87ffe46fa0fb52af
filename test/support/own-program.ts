import { BUILT_GATEWAY } from './built-gateway.ts'

/**
 * The flags of Node for a program of a test that imports the package by its name. Where gateways start from `dist`, it
 * does too: a start takes half the time.
 */
export const OWN_PROGRAM_FLAGS: readonly string[] = process.env[BUILT_GATEWAY]
  ? []
  : ['--conditions=@express-model-gateway/source']
