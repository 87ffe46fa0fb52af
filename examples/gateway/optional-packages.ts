import { ConfigError } from 'express-model-gateway'

/**
 * Loads a module that imports packages which the toolkit does not bring; undefined if one of them is not installed.
 *
 * @throws whatever else the module throws.
 */
export async function loadOptional<Module>(load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/** The fault of a setting that needs packages which are not installed. */
export function missingPackages(setting: string, packages: string): ConfigError {
  return new ConfigError([
    `${setting}: needs packages that are not installed: npm install ${packages}, or install express-model-gateway-server, which brings them all`,
  ])
}
