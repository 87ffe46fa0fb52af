#!/usr/bin/env node
import 'express-model-gateway/gateway/bin'
