# SPDX-License-Identifier: Apache-2.0
"""A bottleneck ResNet in plain PyTorch with torchvision's names, layouts and initial values, so that the comparison needs
no torchvision, whose builds each want one version of torch."""
from torch import nn


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = convolution(width, 4 * width, 1), nn.BatchNorm2d(4 * width)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(convolution(inputs, 4 * width, 1, stride), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + skip)


class ResNet(nn.Module):
    """The default is ResNet-101."""

    def __init__(self, blocks=(3, 4, 23, 3), classes=1000):
        super().__init__()
        self.conv1, self.bn1 = convolution(3, 64, 7, 2), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for i, count in enumerate(blocks):
            width = 64 << i
            layer = [Bottleneck(inputs if b == 0 else 4 * width, width, 2 if i and b == 0 else 1) for b in range(count)]
            setattr(self, f"layer{i + 1}", nn.Sequential(*layer))
            inputs = 4 * width
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))
